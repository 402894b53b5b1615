import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Reads and writes records as Kafka does: record bytes are answered with their batches, and a batch with its bytes.
 */
public final class Records {
    private static final ObjectMapper MAPPER = Answers.MAPPER;

    public static void main(String[] arguments) throws Exception {
        Answers.serve(question ->
                question.isTextual() ? read(Answers.bytes(question)) : Answers.hex(write(question)));
    }

    private static ArrayNode read(byte[] data) {
        ArrayNode found = MAPPER.createArrayNode();
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            ObjectNode node = found.addObject()
                    .put("magic", batch.magic())
                    .put("codec", batch.compressionType().name)
                    .put("base_offset", batch.baseOffset())
                    .put("last_offset", batch.lastOffset())
                    .put("leader_epoch", batch.partitionLeaderEpoch())
                    .put("log_append_time", batch.timestampType() == TimestampType.LOG_APPEND_TIME)
                    .put("max_timestamp", batch.maxTimestamp())
                    .put("producer_id", batch.producerId())
                    .put("producer_epoch", batch.producerEpoch())
                    .put("base_sequence", batch.baseSequence())
                    .put("last_sequence", batch.lastSequence())
                    .put("transactional", batch.isTransactional())
                    .put("control", batch.isControlBatch());
            ArrayNode records = node.putArray("records");
            for (Record record : batch) {
                record.ensureValid();
                records.add(describe(record));
                if (batch.isControlBatch()) {
                    EndTransactionMarker marker = EndTransactionMarker.deserialize(record);
                    node.put("commit", marker.controlType() == ControlRecordType.COMMIT)
                            .put("coordinator_epoch", marker.coordinatorEpoch());
                }
            }
        }
        return found;
    }

    private static ArrayNode describe(Record record) {
        ArrayNode node = MAPPER.createArrayNode().add(record.offset()).add(record.timestamp());
        node.add(Answers.hex(record.key())).add(Answers.hex(record.value()));
        ArrayNode headers = node.addArray();
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(Answers.hex(header.value()));
        }
        return node;
    }

    private static byte[] write(JsonNode batch) {
        boolean appended = batch.hasNonNull("append_time");
        ByteBufferOutputStream output = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                output,
                (byte) batch.get("magic").intValue(),
                Compression.of(batch.get("codec").textValue()).build(),
                appended ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
                batch.get("base_offset").longValue(),
                appended ? batch.get("append_time").longValue() : RecordBatch.NO_TIMESTAMP,
                batch.get("producer_id").longValue(),
                batch.get("producer_epoch").shortValue(),
                batch.get("base_sequence").intValue(),
                batch.get("transactional").booleanValue(),
                batch.has("commit"),
                batch.get("leader_epoch").intValue(),
                Integer.MAX_VALUE);
        if (batch.has("commit")) {
            ControlRecordType type = batch.get("commit").booleanValue() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
            int coordinatorEpoch = batch.get("coordinator_epoch").intValue();
            builder.appendEndTxnMarker(batch.get("timestamp").longValue(), new EndTransactionMarker(type, coordinatorEpoch));
        } else {
            for (JsonNode record : batch.get("records")) {
                builder.appendWithOffset(record.get(0).longValue(), record.get(1).longValue(),
                        Answers.bytes(record.get(2)), Answers.bytes(record.get(3)), headers(record.get(4)));
            }
        }
        ByteBuffer built = builder.build().buffer();
        byte[] data = new byte[built.remaining()];
        built.get(data);
        return data;
    }

    private static Header[] headers(JsonNode nodes) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode node : nodes) {
            headers.add(new RecordHeader(node.get(0).textValue(), Answers.bytes(node.get(1))));
        }
        return headers.toArray(new Header[0]);
    }

    private Records() {}
}
