import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/** Runs Kafka's command-line tools one after another in one process, which is quicker than a process for each. */
public final class Tools {
    /** Takes the place of the end of the process. */
    private static final class Ended extends RuntimeException {
        private static final long serialVersionUID = 1;
    }

    /** The first status that a tool ended with, and what it had said by then: it may catch `Ended`, and go on. */
    private static Integer status;
    private static String complaints;
    /** What a tool wants done at the end of its process; it closes producers there. */
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static final ByteArrayOutputStream ERRORS = new ByteArrayOutputStream();

    public static void main(String[] arguments) throws Exception {
        Exit.Procedure end = (code, message) -> {
            end(code);
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        Answers.serve(Tools::run);
    }

    private static void end(int code) {
        if (status == null) {
            status = code;
            complaints = ERRORS.toString(StandardCharsets.UTF_8);
        }
    }

    private static Object run(JsonNode question) throws Exception {
        String[] arguments = Answers.MAPPER.convertValue(question.get("arguments"), String[].class);
        InputStream input = System.in;
        PrintStream output = System.out;
        PrintStream errors = System.err;
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        status = null;
        ERRORS.reset();
        try {
            System.setIn(new ByteArrayInputStream(question.get("input").textValue().getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(written, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(ERRORS, true, StandardCharsets.UTF_8));
            Class.forName(question.get("tool").textValue()).getMethod("main", String[].class).invoke(null, (Object) arguments);
            end(0);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                throw error;
            }
        } finally {
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
            System.out.flush();
            System.setIn(input);
            System.setOut(output);
            System.setErr(errors);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("status", status);
        answer.put("output", written.toString(StandardCharsets.UTF_8));
        answer.put("errors", complaints);
        return answer;
    }

    private Tools() {}
}
