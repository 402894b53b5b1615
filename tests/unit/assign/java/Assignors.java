import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Kafka's own assignors, and the bytes that its consumers write and read. */
final class Assignors {
    private static final Node NODE = new Node(1, "localhost", 9092);

    public static void main(String[] arguments) throws Exception {
        Answers.serve(Map.of("join", Assignors::join, "lead", Assignors::lead, "read", Assignors::read));
    }

    private static ConsumerPartitionAssignor assignor(JsonNode question) {
        List<ConsumerPartitionAssignor> all = List.of(
            new RangeAssignor(), new RoundRobinAssignor(), new StickyAssignor(), new CooperativeStickyAssignor());
        String name = question.get("assignor").textValue();
        return all.stream().filter(one -> one.name().equals(name)).findFirst().orElseThrow();
    }

    /** What a member sends that was given `owned` in `generation`. */
    private static Object join(JsonNode question) {
        ConsumerPartitionAssignor assignor = assignor(question);
        List<String> topics = new ArrayList<>();
        question.get("topics").forEach(topic -> topics.add(topic.textValue()));
        List<TopicPartition> owned = partitions(question.get("owned"));
        int generation = question.get("generation").intValue();
        if (generation >= 0) {
            ConsumerGroupMetadata group = new ConsumerGroupMetadata("g", generation, "m", Optional.empty());
            assignor.onAssignment(new Assignment(owned), group);
        }
        ByteBuffer userData = assignor.subscriptionUserData(new HashSet<>(topics));
        List<TopicPartition> kept = assignor instanceof CooperativeStickyAssignor ? owned : List.of();
        Subscription subscription = new Subscription(topics, userData, kept, generation, Optional.empty());
        short version = (short) question.get("version").intValue();
        return hex(ConsumerProtocol.serializeSubscription(subscription, version));
    }

    /** What the leader gives to each member. */
    private static Object lead(JsonNode question) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        question.get("subscriptions").fields().forEachRemaining(entry -> {
            ByteBuffer data = ByteBuffer.wrap(Answers.bytes(entry.getValue()));
            Subscription subscription = ConsumerProtocol.deserializeSubscription(data);
            JsonNode instance = question.get("instances").get(entry.getKey());
            boolean isStatic = instance != null && !instance.isNull();
            subscription.setGroupInstanceId(isStatic ? Optional.of(instance.textValue()) : Optional.empty());
            subscriptions.put(entry.getKey(), subscription);
        });
        List<PartitionInfo> partitions = new ArrayList<>();
        Node[] nodes = {NODE};
        question.get("counts").fields().forEachRemaining(entry -> {
            for (int index = 0; index < entry.getValue().intValue(); index++)
                partitions.add(new PartitionInfo(entry.getKey(), index, NODE, nodes, nodes));
        });
        Cluster cluster = new Cluster("c", List.of(NODE), partitions, Set.of(), Set.of());
        Map<String, String> answer = new TreeMap<>();
        assignor(question).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment().forEach(
            (member, assignment) -> answer.put(member, hex(ConsumerProtocol.serializeAssignment(assignment))));
        return answer;
    }

    /** What a member takes from an assignment. */
    private static Object read(JsonNode question) {
        Map<String, List<Integer>> answer = new TreeMap<>();
        ByteBuffer data = ByteBuffer.wrap(Answers.bytes(question.get("data")));
        for (TopicPartition one : ConsumerProtocol.deserializeAssignment(data).partitions())
            answer.computeIfAbsent(one.topic(), topic -> new ArrayList<>()).add(one.partition());
        return answer;
    }

    private static List<TopicPartition> partitions(JsonNode owned) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (Iterator<Map.Entry<String, JsonNode>> topics = owned.fields(); topics.hasNext();) {
            Map.Entry<String, JsonNode> topic = topics.next();
            topic.getValue().forEach(index -> partitions.add(new TopicPartition(topic.getKey(), index.intValue())));
        }
        return partitions;
    }

    private static String hex(ByteBuffer buffer) {
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return Answers.hex(data);
    }
}
