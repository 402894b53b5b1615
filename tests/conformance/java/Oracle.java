import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/** Answers each line of JSON on its input with one line: what Kafka's own message classes make of it. */
public final class Oracle {
    private static final List<String> DATA_CLASSES = List.of(
            "org.apache.kafka.common.message.%s",
            "org.apache.kafka.common.message.%sData",
            "org.apache.kafka.coordinator.group.generated.%s",
            "org.apache.kafka.coordinator.transaction.generated.%s");

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(answer(mapper.readTree(line)));
            output.flush();
        }
    }

    private static String answer(JsonNode question) {
        short version = (short) question.get("version").intValue();
        Message known = find(question);
        boolean covered = known != null
                && version >= known.lowestSupportedVersion() && version <= known.highestSupportedVersion();
        if (!question.has("body")) {
            return covered ? "yes" : "no";
        }
        try {
            Message message = read(known.getClass(), question.get("body"), version);
            addUnknownTags(message, question.get("body"));
            return HexFormat.of().formatHex(write(message, version));
        } catch (InvocationTargetException error) {
            return "!" + error.getCause();
        } catch (Exception | LinkageError error) {
            return "!" + error;
        }
    }

    /** An empty message of the class asked for, or null where this release has none. */
    private static Message find(JsonNode question) {
        String kind = question.get("kind").textValue();
        try {
            if (kind.equals("request")) {
                return ApiMessageType.fromApiKey((short) question.get("key").intValue()).newRequest();
            }
            if (kind.equals("response")) {
                return ApiMessageType.fromApiKey((short) question.get("key").intValue()).newResponse();
            }
        } catch (RuntimeException unknown) {
            return null;
        }
        for (String pattern : DATA_CLASSES) {
            try {
                String name = String.format(pattern, question.get("name").textValue());
                return (Message) Class.forName(name).getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException absent) {
                continue;
            }
        }
        return null;
    }

    private static Message read(Class<?> type, JsonNode body, short version) throws ReflectiveOperationException {
        return (Message) Class.forName(type.getName() + "JsonConverter")
                .getMethod("read", JsonNode.class, short.class)
                .invoke(null, body, version);
    }

    private static byte[] write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("the message is shorter than its size by " + buffer.remaining());
        }
        return buffer.array();
    }

    /** Kafka's JSON has no place for tagged fields that it does not know, so they are added to the objects. */
    private static void addUnknownTags(Object value, JsonNode node) throws ReflectiveOperationException {
        if (value instanceof Message message) {
            if (node.has("unknownTags")) {
                node.get("unknownTags").fields().forEachRemaining(tag -> message.unknownTaggedFields()
                        .add(new RawTaggedField(Integer.parseInt(tag.getKey()), bytes(tag.getValue()))));
                message.unknownTaggedFields().sort(Comparator.comparingInt(RawTaggedField::tag));
            }
            for (Iterator<Map.Entry<String, JsonNode>> fields = node.fields(); fields.hasNext();) {
                Map.Entry<String, JsonNode> field = fields.next();
                if (field.getValue().isContainerNode() && !field.getKey().equals("unknownTags")) {
                    Object inner = value.getClass().getMethod(field.getKey()).invoke(value);
                    addUnknownTags(inner, field.getValue());
                }
            }
        } else if (value instanceof Iterable<?> items && node.isArray()) {
            Iterator<JsonNode> nodes = node.elements();
            for (Object item : items) {
                addUnknownTags(item, nodes.next());
            }
        }
    }

    private static byte[] bytes(JsonNode text) {
        return Base64.getDecoder().decode(text.textValue());
    }

    private Oracle() {}
}
