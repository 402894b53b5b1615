import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces and consumes with the client of whatever release it was compiled with, from 0.9 to the newest; what not all
 * of them have is called by its name. A record is [offset, timestamp, key, value, headers]; a timestamp of -1 is none.
 */
public final class Client {
    private static final long PATIENCE_MS = 20_000;

    public static void main(String[] arguments) throws Exception {
        Map<String, Answers.Answer> answers = new HashMap<>();
        answers.put("produce", Client::produce);
        answers.put("consume", Client::consume);
        answers.put("offsets", Client::offsets);
        answers.putAll(Members.answers());
        Answers.serve(answers);
    }

    /** Send records and wait for them: for each its offset, or the exception that came instead. */
    private static Object produce(JsonNode question) throws Exception {
        List<Object> outcomes = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config(question), new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : question.get("records")) {
                sent.add(producer.send(record(partition(question), record)));
            }
            for (Future<RecordMetadata> future : sent) {
                try {
                    outcomes.add(future.get().offset());
                } catch (Exception refused) {
                    outcomes.add(Answers.describe(refused));
                }
            }
        }
        return outcomes;
    }

    /** Assign one partition, go to a position and poll until there are `count` records. */
    private static Object consume(JsonNode question) throws Exception {
        TopicPartition partition = partition(question);
        Map<String, Object> answer = new LinkedHashMap<>();
        List<Object> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(question)) {
            consumer.assign(Collections.singletonList(partition));
            seek(consumer, partition, question.get("from"));
            answer.put("position", consumer.position(partition));
            long deadline = System.currentTimeMillis() + PATIENCE_MS;
            while (records.size() < question.get("count").intValue() && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : poll(consumer, 100)) {
                    records.add(describe(record));
                }
            }
        }
        answer.put("records", records);
        return answer;
    }

    /** Where a partition begins and ends, and where the records from some times on begin. */
    private static Object offsets(JsonNode question) throws Exception {
        TopicPartition partition = partition(question);
        Map<String, Object> answer = new LinkedHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(question)) {
            List<TopicPartition> partitions = Collections.singletonList(partition);
            answer.put("beginning", ((Map<?, ?>) Calls.call(consumer, "beginningOffsets", partitions)).get(partition));
            answer.put("end", ((Map<?, ?>) Calls.call(consumer, "endOffsets", partitions)).get(partition));
            List<Object> found = new ArrayList<>();
            for (JsonNode time : question.get("times")) {
                Map<TopicPartition, Long> asked = Collections.singletonMap(partition, time.longValue());
                Object offset = ((Map<?, ?>) Calls.call(consumer, "offsetsForTimes", asked)).get(partition);
                found.add(offset == null ? null : Arrays.asList(Calls.call(offset, "offset"), Calls.call(offset, "timestamp")));
            }
            answer.put("times", found);
        }
        return answer;
    }

    private static Map<String, Object> config(JsonNode question) {
        return new HashMap<>(Answers.texts(question.get("config")));
    }

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode question) {
        return new KafkaConsumer<>(config(question), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static TopicPartition partition(JsonNode question) {
        return new TopicPartition(question.get("topic").textValue(), question.get("partition").intValue());
    }

    private static void seek(KafkaConsumer<?, ?> consumer, TopicPartition partition, JsonNode from) throws Exception {
        if (from.isNumber()) {
            consumer.seek(partition, from.longValue());
            return;
        }
        String name = from.textValue().equals("beginning") ? "seekToBeginning" : "seekToEnd";
        try {
            Calls.call(consumer, name, Collections.singletonList(partition));
        } catch (NoSuchMethodException before0100) {
            Calls.call(consumer, name, (Object) new TopicPartition[] {partition});
        }
    }

    @SuppressWarnings("unchecked")
    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long timeoutMs) throws Exception {
        try {
            return (ConsumerRecords<byte[], byte[]>) Calls.call(consumer, "poll", Duration.ofMillis(timeoutMs));
        } catch (NoSuchMethodException before20) {
            return (ConsumerRecords<byte[], byte[]>) Calls.call(consumer, "poll", timeoutMs);
        }
    }

    /** A record with all that this release can put into one. */
    private static ProducerRecord<byte[], byte[]> record(TopicPartition to, JsonNode fields) throws Exception {
        Long timestamp = fields.get(1).longValue() < 0 ? null : fields.get(1).longValue();
        byte[] key = Answers.bytes(fields.get(2));
        byte[] value = Answers.bytes(fields.get(3));
        ProducerRecord<byte[], byte[]> record;
        try {
            record = newRecord(to.topic(), to.partition(), timestamp, key, value);
        } catch (NoSuchMethodException before0100) {
            record = new ProducerRecord<>(to.topic(), to.partition(), key, value);
        }
        for (JsonNode header : fields.get(4)) {
            Calls.call(Calls.call(record, "headers"), "add", header.get(0).textValue(), Answers.bytes(header.get(1)));
        }
        return record;
    }

    @SuppressWarnings("unchecked")
    private static ProducerRecord<byte[], byte[]> newRecord(Object... fields) throws Exception {
        return ProducerRecord.class
                .getConstructor(String.class, Integer.class, Long.class, Object.class, Object.class)
                .newInstance(fields);
    }

    private static List<Object> describe(ConsumerRecord<byte[], byte[]> record) throws Exception {
        List<Object> headers = new ArrayList<>();
        Object timestamp = -1L;
        try {
            timestamp = Calls.call(record, "timestamp");
            for (Object header : (Iterable<?>) Calls.call(record, "headers")) {
                headers.add(Arrays.asList(Calls.call(header, "key"), Answers.hex((byte[]) Calls.call(header, "value"))));
            }
        } catch (NoSuchMethodException before011) {
            // It has no headers, and before 0.10 no timestamp either.
        }
        return Arrays.asList(record.offset(), timestamp,
                Answers.hex(record.key()), Answers.hex(record.value()), headers);
    }

    private Client() {}
}
