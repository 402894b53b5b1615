import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** Calls the administration client, of Kafka 3.3 and later, on the broker whose address each question carries. */
public final class Administration {
    private static final Map<String, Admin> OPEN = new HashMap<>();

    /** One call of the client. */
    interface Call {
        Object on(Admin admin, JsonNode question) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Answers.Answer> answers = new HashMap<>();
        answers.put("create_topic", calling(Administration::createTopic));
        answers.put("delete_topic", calling((admin, question) -> get(admin.deleteTopics(names(question)).all())));
        answers.put("list_topics", calling((admin, question) -> get(admin.listTopics().names())));
        answers.put("describe_topic", calling(Administration::describeTopic));
        answers.put("create_partitions", calling(Administration::createPartitions));
        answers.put("describe_configs", calling(Administration::describeConfigs));
        answers.put("alter_configs", calling(Administration::alterConfigs));
        answers.put("delete_records", calling(Administration::deleteRecords));
        answers.put("list_offset", calling(Administration::listOffset));
        answers.put("describe_cluster", calling(Administration::describeCluster));
        answers.put("describe_log_dirs", calling(Administration::describeLogDirs));
        answers.put("describe_producers", calling(Administration::describeProducers));
        GroupAdministration.calls().forEach((name, call) -> answers.put(name, calling(call)));
        Answers.serve(answers);
        OPEN.values().forEach(admin -> admin.close(Duration.ofSeconds(1)));
    }

    private static Answers.Answer calling(Call call) {
        return question -> call.on(OPEN.computeIfAbsent(question.get("servers").textValue(), Administration::open), question);
    }

    private static Admin open(String servers) {
        return Admin.create(Collections.singletonMap("bootstrap.servers", servers));
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(20, TimeUnit.SECONDS);
    }

    private static Object createTopic(Admin admin, JsonNode question) throws Exception {
        String name = question.get("topic").textValue();
        NewTopic topic = question.has("assignment")
                ? new NewTopic(name, assignment(question.get("assignment")))
                : new NewTopic(name, optional(question, "partitions"), optional(question, "replication").map(Integer::shortValue));
        topic.configs(Answers.texts(question.get("config")));
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(question.get("validate_only").booleanValue());
        CreateTopicsResult result = admin.createTopics(Collections.singletonList(topic), options);
        get(result.all());
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("partitions", get(result.numPartitions(name)));
        answer.put("replication", get(result.replicationFactor(name)));
        answer.put("config", entries(get(result.config(name))));
        if (!options.shouldValidateOnly()) {
            answer.put("id", get(result.topicId(name)).toString());
        }
        return answer;
    }

    private static Object describeTopic(Admin admin, JsonNode question) throws Exception {
        TopicDescription topic = get(admin.describeTopics(names(question)).allTopicNames()).values().iterator().next();
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo partition : topic.partitions()) {
            partitions.add(Arrays.asList(partition.partition(), partition.leader().id(), ids(partition.replicas()), ids(partition.isr())));
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", topic.topicId().toString());
        answer.put("internal", topic.isInternal());
        answer.put("partitions", partitions);
        return answer;
    }

    private static Object createPartitions(Admin admin, JsonNode question) throws Exception {
        NewPartitions partitions = NewPartitions.increaseTo(question.get("count").intValue());
        return get(admin.createPartitions(Collections.singletonMap(question.get("topic").textValue(), partitions)).all());
    }

    private static Object describeConfigs(Admin admin, JsonNode question) throws Exception {
        ConfigResource resource = resource(question);
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return entries(get(admin.describeConfigs(Collections.singletonList(resource), options).all()).get(resource));
    }

    private static Object alterConfigs(Admin admin, JsonNode question) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        for (JsonNode operation : question.get("operations")) {
            ConfigEntry entry = new ConfigEntry(operation.get(1).textValue(), operation.get(2).textValue());
            operations.add(new AlterConfigOp(entry, AlterConfigOp.OpType.valueOf(operation.get(0).textValue())));
        }
        return get(admin.incrementalAlterConfigs(Collections.singletonMap(resource(question), operations)).all());
    }

    private static Object deleteRecords(Admin admin, JsonNode question) throws Exception {
        RecordsToDelete before = RecordsToDelete.beforeOffset(question.get("before").longValue());
        TopicPartition partition = partition(question);
        return get(admin.deleteRecords(Collections.singletonMap(partition, before)).lowWatermarks().get(partition)).lowWatermark();
    }

    private static Object listOffset(Admin admin, JsonNode question) throws Exception {
        IsolationLevel isolation = IsolationLevel.valueOf(question.get("isolation").textValue());
        Map<TopicPartition, OffsetSpec> asked = Collections.singletonMap(partition(question), spec(question.get("at")));
        ListOffsetsResultInfo found =
                get(admin.listOffsets(asked, new ListOffsetsOptions(isolation)).partitionResult(partition(question)));
        return Arrays.asList(found.offset(), found.timestamp(), found.leaderEpoch().orElse(null));
    }

    private static OffsetSpec spec(JsonNode at) {
        if (at.isNumber()) {
            return OffsetSpec.forTimestamp(at.longValue());
        }
        switch (at.textValue()) {
            case "earliest": return OffsetSpec.earliest();
            case "latest": return OffsetSpec.latest();
            default: return OffsetSpec.maxTimestamp();
        }
    }

    private static Object describeCluster(Admin admin, JsonNode question) throws Exception {
        DescribeClusterResult result = admin.describeCluster();
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", get(result.clusterId()));
        answer.put("controller", get(result.controller()).id());
        List<Object> nodes = new ArrayList<>();
        for (Node node : get(result.nodes())) {
            nodes.add(Arrays.asList(node.id(), node.host(), node.port()));
        }
        answer.put("nodes", nodes);
        return answer;
    }

    private static Object describeLogDirs(Admin admin, JsonNode question) throws Exception {
        int broker = question.get("broker").intValue();
        Map<String, Object> answer = new LinkedHashMap<>();
        Map<String, LogDirDescription> folders = get(admin.describeLogDirs(Collections.singletonList(broker)).allDescriptions()).get(broker);
        folders.forEach((folder, description) -> {
            Map<String, Object> sizes = new TreeMap<>();
            description.replicaInfos().forEach((partition, replica) -> sizes.put(partition.toString(), replica.size()));
            Map<String, Object> known = new LinkedHashMap<>();
            known.put("error", description.error() == null ? null : description.error().toString());
            known.put("total", description.totalBytes().orElse(-1));
            known.put("usable", description.usableBytes().orElse(-1));
            known.put("sizes", sizes);
            answer.put(folder, known);
        });
        return answer;
    }

    private static Object describeProducers(Admin admin, JsonNode question) throws Exception {
        TopicPartition partition = partition(question);
        List<Object> producers = new ArrayList<>();
        for (ProducerState state : get(admin.describeProducers(Collections.singletonList(partition)).partitionResult(partition)).activeProducers()) {
            producers.add(Arrays.asList(state.producerId(), state.producerEpoch(), state.lastSequence(), state.lastTimestamp()));
        }
        return producers;
    }

    /** By name: value, source, type, whether it is read-only, synonyms as (name, value, source), documentation. */
    private static Map<String, Object> entries(Config config) {
        Map<String, Object> entries = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            Map<String, Object> known = new LinkedHashMap<>();
            List<Object> synonyms = new ArrayList<>();
            for (ConfigEntry.ConfigSynonym synonym : entry.synonyms()) {
                synonyms.add(Arrays.asList(synonym.name(), synonym.value(), synonym.source().name()));
            }
            known.put("value", entry.value());
            known.put("source", entry.source().name());
            known.put("type", entry.type() == null ? null : entry.type().name());
            known.put("read_only", entry.isReadOnly());
            known.put("synonyms", synonyms);
            known.put("documentation", entry.documentation());
            entries.put(entry.name(), known);
        }
        return entries;
    }

    private static ConfigResource resource(JsonNode question) {
        return new ConfigResource(ConfigResource.Type.valueOf(question.get("type").textValue()), question.get("name").textValue());
    }

    private static TopicPartition partition(JsonNode question) {
        return new TopicPartition(question.get("topic").textValue(), question.get("partition").intValue());
    }

    private static List<String> names(JsonNode question) {
        return Collections.singletonList(question.get("topic").textValue());
    }

    private static Optional<Integer> optional(JsonNode question, String name) {
        return question.has(name) ? Optional.of(question.get(name).intValue()) : Optional.empty();
    }

    private static Map<Integer, List<Integer>> assignment(JsonNode brokersByPartition) {
        Map<Integer, List<Integer>> assignment = new TreeMap<>();
        for (JsonNode brokers : brokersByPartition) {
            List<Integer> ids = new ArrayList<>();
            brokers.forEach(broker -> ids.add(broker.intValue()));
            assignment.put(assignment.size(), ids);
        }
        return assignment;
    }

    private static List<Integer> ids(List<Node> nodes) {
        List<Integer> ids = new ArrayList<>();
        nodes.forEach(node -> ids.add(node.id()));
        return ids;
    }

    private Administration() {}
}
