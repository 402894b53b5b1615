import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.message.DescribeProducersResponseData.ProducerState;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Opens the folder of a partition with the log of Kafka's own broker, after a clean stop, and prints what it found. */
public final class OpenLog {
    public static void main(String[] arguments) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(
                new File(arguments[0]), new LogConfig(Map.of()), 0L, Long.MAX_VALUE, scheduler, new BrokerTopicStats(),
                Time.SYSTEM, 60_000, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000,
                new LogDirFailureChannel(1), true, Optional.empty());
        try {
            System.out.println(Answers.MAPPER.writeValueAsString(describe(log)));
        } finally {
            log.close();
            scheduler.shutdown();
        }
    }

    private static Map<String, Object> describe(UnifiedLog log) throws Exception {
        List<Long> segments = new ArrayList<>();
        for (LogSegment segment : log.logSegments()) {
            segment.sanityCheck(false);
            segments.add(segment.baseOffset());
        }
        List<Object> epochs = new ArrayList<>();
        log.leaderEpochCache().epochEntries().forEach(entry -> epochs.add(Arrays.asList(entry.epoch(), entry.startOffset())));
        List<Object> producers = new ArrayList<>();
        for (ProducerState producer : log.activeProducers()) {
            producers.add(Arrays.asList(producer.producerId(), producer.producerEpoch(), producer.lastSequence()));
        }
        List<Long> offsets = new ArrayList<>();
        for (long next = log.logStartOffset(); next < log.logEndOffset();) {
            // Compaction leaves batches without records.
            for (RecordBatch batch : log.read(next, 1, FetchIsolation.LOG_END, true).records.batches()) {
                batch.ensureValid();
                batch.forEach(record -> offsets.add(record.offset()));
                next = batch.nextOffset();
            }
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("topic_id", log.topicId().map(Object::toString).orElse(null));
        found.put("start", log.logStartOffset());
        found.put("end", log.logEndOffset());
        found.put("segments", segments);
        found.put("epochs", epochs);
        found.put("producers", producers);
        found.put("offsets", offsets);
        return found;
    }

    private OpenLog() {}
}
