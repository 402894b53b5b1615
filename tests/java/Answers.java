import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/** Answers each line of JSON on the input with one on the output. Bytes inside JSON are hexadecimal digits. */
final class Answers {
    static final ObjectMapper MAPPER = new ObjectMapper();

    /** What a program does with a question; whatever Jackson can write is an answer. */
    interface Answer {
        Object to(JsonNode question) throws Exception;
    }

    /** Answer until the input ends. */
    static void serve(Answer answer) throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(MAPPER.writeValueAsString(answer(answer, MAPPER.readTree(line))));
            output.flush();
        }
    }

    /** Answer questions whose field `do` names what is to be done. */
    static void serve(Map<String, Answer> answers) throws IOException {
        serve(question -> answers.get(question.get("do").textValue()).to(question));
    }

    private static Map<String, Object> answer(Answer answer, JsonNode question) {
        try {
            return Collections.singletonMap("answer", answer.to(question));
        } catch (Exception | LinkageError error) {
            return Collections.singletonMap("error", describe(error));
        }
    }

    /** An error without the wrappers that futures and reflection put around it. */
    static String describe(Throwable error) {
        boolean wrapped = error instanceof ExecutionException || error instanceof InvocationTargetException;
        return wrapped ? describe(error.getCause()) : error.toString();
    }

    static byte[] bytes(JsonNode digits) {
        return digits.isNull() ? null : HexFormat.of().parseHex(digits.textValue());
    }

    static String hex(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return hex(data);
    }

    /** A JSON object of texts as a map that keeps their order. */
    static Map<String, String> texts(JsonNode object) {
        Map<String, String> texts = new LinkedHashMap<>();
        for (Iterator<Map.Entry<String, JsonNode>> fields = object.fields(); fields.hasNext();) {
            Map.Entry<String, JsonNode> field = fields.next();
            texts.put(field.getKey(), field.getValue().asText());
        }
        return texts;
    }

    private Answers() {}
}
