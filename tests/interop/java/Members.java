import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** Members of groups: consumers that subscribe, each with a thread that polls. Partitions are [topic, number]. */
final class Members {
    private static final long PATIENCE_SECONDS = 30;
    /** How long a poll waits for records; what a member is told to do is done between two of them. */
    private static final long POLL_MS = 20;
    private static final List<Member> ALL = new ArrayList<>();
    /** What all members did, in that order: [what, member, topic, partition, offset]. */
    private static final List<Object> JOURNAL = new ArrayList<>();

    static Map<String, Answers.Answer> answers() {
        Map<String, Answers.Answer> answers = new HashMap<>();
        answers.put("join", Members::join);
        answers.put("look", question -> member(question).look());
        answers.put("commit", question -> member(question).commit(question.get("how").textValue().equals("async")));
        answers.put("halt", question -> member(question).halt());
        answers.put("leave", question -> member(question).leave());
        answers.put("journal", question -> journal());
        return answers;
    }

    private static Object join(JsonNode question) {
        Member member = new Member(ALL.size(), question);
        ALL.add(member);
        member.start();
        return member.number;
    }

    private static Member member(JsonNode question) {
        return ALL.get(question.get("member").intValue());
    }

    private static void note(String what, int member, TopicPartition partition, long offset) {
        synchronized (JOURNAL) {
            JOURNAL.add(Arrays.asList(what, member, partition.topic(), partition.partition(), offset));
        }
    }

    /** The journal since it was asked for last. */
    private static Object journal() {
        synchronized (JOURNAL) {
            List<Object> taken = new ArrayList<>(JOURNAL);
            JOURNAL.clear();
            return taken;
        }
    }

    private static List<Object> describe(Collection<TopicPartition> partitions) {
        List<Object> described = new ArrayList<>();
        for (TopicPartition partition : partitions) {
            described.add(Arrays.asList(partition.topic(), partition.partition()));
        }
        return described;
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final int number;
        private final JsonNode question;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Queue<FutureTask<?>> tasks = new ConcurrentLinkedQueue<>();
        /** Where to go on in the partitions that it has. */
        private final Map<TopicPartition, OffsetAndMetadata> next = new LinkedHashMap<>();
        private volatile boolean halted;
        private List<Object> records = new ArrayList<>();
        private List<Object> events = new ArrayList<>();
        private List<Object> partitions = new ArrayList<>();
        private String failure;

        private Member(int number, JsonNode question) {
            this.number = number;
            this.question = question;
            consumer = Client.consumer(question);
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                Calls.call(consumer, "subscribe", subscription(), this);
                while (!halted) {
                    poll();
                    runTasks();
                }
            } catch (Exception | LinkageError error) {
                synchronized (this) {
                    failure = Answers.describe(error);
                }
            }
            halted = true;
            runTasks();
        }

        private void runTasks() {
            for (FutureTask<?> task = tasks.poll(); task != null; task = tasks.poll()) {
                task.run();
            }
        }

        private Object subscription() throws Exception {
            if (question.has("pattern")) {
                return Pattern.compile(question.get("pattern").textValue());
            }
            if (question.has("re2")) {
                return Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern")
                        .getConstructor(String.class).newInstance(question.get("re2").textValue());
            }
            return Collections.singletonList(question.get("topic").textValue());
        }

        private void poll() throws Exception {
            List<Object> found = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> record : Client.poll(consumer, POLL_MS)) {
                TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                found.add(Arrays.asList(record.topic(), record.partition(), record.offset(), Answers.hex(record.value())));
                note("read", number, partition, record.offset());
                next.put(partition, new OffsetAndMetadata(record.offset() + 1));
            }
            synchronized (this) {
                records.addAll(found);
                partitions = describe(consumer.assignment());
                notifyAll();
            }
            if (question.get("always_commits").booleanValue() && !next.isEmpty()) {
                commitWhatWasRead();
            }
        }

        private void commitWhatWasRead() {
            try {
                consumer.commitSync(next);
                next.forEach((partition, position) -> note("committed", number, partition, position.offset()));
                next.clear();
            } catch (KafkaException rebalancing) {
                // It comes along with the next one, unless the partition is taken away before.
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
            happened("assigned", assigned);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            if (question.get("always_commits").booleanValue() && !next.isEmpty()) {
                commitWhatWasRead();
            }
            happened("revoked", revoked);
        }

        /** From 2.4 on; before, partitions were revoked whatever had happened. */
        public void onPartitionsLost(Collection<TopicPartition> lost) {
            happened("lost", lost);
        }

        private synchronized void happened(String what, Collection<TopicPartition> changed) {
            events.add(Arrays.asList(what, describe(changed)));
            changed.forEach(partition -> note(what, number, partition, -1));
            if (!what.equals("assigned")) {
                next.keySet().removeAll(changed);
                partitions.removeAll(describe(changed));
            }
        }

        /** What has come since, after waiting a little for records; and which partitions it has now. */
        private synchronized Object look() throws Exception {
            if (records.isEmpty() && failure == null) {
                wait(POLL_MS);
            }
            Map<String, Object> seen = new LinkedHashMap<>();
            seen.put("records", records);
            seen.put("events", events);
            seen.put("partitions", partitions);
            seen.put("failure", failure);
            records = new ArrayList<>();
            events = new ArrayList<>();
            return seen;
        }

        private Object commit(boolean later) throws Exception {
            if (!later) {
                return perform(() -> {
                    consumer.commitSync();
                    return null;
                });
            }
            CompletableFuture<Object> done = new CompletableFuture<>();
            perform(() -> {
                consumer.commitAsync((offsets, error) -> {
                    if (error == null) {
                        done.complete(null);
                    } else {
                        done.completeExceptionally(error);
                    }
                });
                return null;
            });
            return done.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }

        /** Stop to poll, without a word to the group. */
        private Object halt() throws Exception {
            halted = true;
            join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
            return null;
        }

        private Object leave() throws Exception {
            return perform(() -> {
                halted = true;
                consumer.close();
                return null;
            });
        }

        /** Have it done between two polls: a consumer lets no second thread in. */
        private Object perform(Callable<Object> task) throws Exception {
            FutureTask<Object> performed = new FutureTask<>(task);
            tasks.add(performed);
            if (!isAlive()) {
                runTasks();
            }
            return performed.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        }
    }

    private Members() {}
}
