import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ConsumerGroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/** The administration client's calls for groups; those of Kafka 4 are called by their names. */
final class GroupAdministration {
    static Map<String, Administration.Call> calls() {
        Map<String, Administration.Call> calls = new HashMap<>();
        calls.put("list_consumer_groups", GroupAdministration::listConsumerGroups);
        calls.put("list_groups", GroupAdministration::listGroups);
        calls.put("describe_consumer_group", GroupAdministration::describeConsumerGroup);
        calls.put("describe_classic_group", GroupAdministration::describeClassicGroup);
        calls.put("list_group_offsets", GroupAdministration::listOffsets);
        calls.put("alter_group_offset", GroupAdministration::alterOffset);
        calls.put("delete_group_offset", GroupAdministration::deleteOffset);
        calls.put("delete_group", (admin, question) -> Administration.get(admin.deleteConsumerGroups(Collections.singletonList(group(question))).all()));
        calls.put("remove_members", GroupAdministration::removeMembers);
        return calls;
    }

    /** By id: state and type. */
    private static Object listConsumerGroups(Admin admin, JsonNode question) throws Exception {
        Set<ConsumerGroupState> states = new HashSet<>();
        question.get("states").forEach(state -> states.add(ConsumerGroupState.parse(state.textValue())));
        ListConsumerGroupsOptions options = new ListConsumerGroupsOptions().inStates(states).withTypes(types(question));
        Map<String, Object> found = new TreeMap<>();
        for (ConsumerGroupListing group : Administration.get(admin.listConsumerGroups(options).all())) {
            found.put(group.groupId(), List.of(text(group.state()), text(group.type())));
        }
        return found;
    }

    /** By id: state, type and protocol. */
    private static Object listGroups(Admin admin, JsonNode question) throws Exception {
        Object options = Class.forName("org.apache.kafka.clients.admin.ListGroupsOptions").getConstructor().newInstance();
        Class<?> state = Class.forName("org.apache.kafka.common.GroupState");
        Set<Object> states = new HashSet<>();
        for (JsonNode name : question.get("states")) {
            states.add(state.getMethod("parse", String.class).invoke(null, name.textValue()));
        }
        Calls.call(options, "inGroupStates", states);
        Calls.call(options, "withTypes", types(question));
        Map<String, Object> found = new TreeMap<>();
        for (Object group : (Collection<?>) future(Calls.call(Calls.call(admin, "listGroups", options), "all"))) {
            String id = (String) Calls.call(group, "groupId");
            found.put(id, List.of(text(Calls.call(group, "groupState")), text(Calls.call(group, "type")), Calls.call(group, "protocol")));
        }
        return found;
    }

    private static Object describeConsumerGroup(Admin admin, JsonNode question) throws Exception {
        ConsumerGroupDescription group =
                Administration.get(admin.describeConsumerGroups(Collections.singletonList(group(question))).all()).get(group(question));
        Map<String, Object> found = described(group.state(), group.partitionAssignor(), group.members());
        found.put("type", group.type().toString());
        found.put("simple", group.isSimpleConsumerGroup());
        found.put("coordinator", group.coordinator().id());
        return found;
    }

    @SuppressWarnings("unchecked")
    private static Object describeClassicGroup(Admin admin, JsonNode question) throws Exception {
        Object result = Calls.call(admin, "describeClassicGroups", Collections.singletonList(group(question)));
        Object group = ((Map<?, ?>) future(Calls.call(result, "all"))).get(group(question));
        Collection<MemberDescription> members = (Collection<MemberDescription>) Calls.call(group, "members");
        Map<String, Object> found = described(Calls.call(group, "state"), Calls.call(group, "protocolData"), members);
        found.put("protocol", Calls.call(group, "protocol"));
        return found;
    }

    private static Map<String, Object> described(Object state, Object assignor, Collection<MemberDescription> members) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("state", state.toString());
        found.put("assignor", assignor);
        List<Object> described = new ArrayList<>();
        for (MemberDescription member : members) {
            Map<String, Object> known = new LinkedHashMap<>();
            known.put("instance", member.groupInstanceId().orElse(null));
            known.put("client", member.clientId());
            known.put("host", member.host());
            known.put("partitions", names(member.assignment().topicPartitions()));
            known.put("target", member.targetAssignment().map(target -> names(target.topicPartitions())).orElse(null));
            described.add(known);
        }
        found.put("members", described);
        return found;
    }

    /** By partition: offset, leader epoch and metadata. */
    private static Object listOffsets(Admin admin, JsonNode question) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        Map<TopicPartition, OffsetAndMetadata> offsets =
                Administration.get(admin.listConsumerGroupOffsets(group(question)).partitionsToOffsetAndMetadata());
        for (Map.Entry<TopicPartition, OffsetAndMetadata> entry : offsets.entrySet()) {
            OffsetAndMetadata offset = entry.getValue();
            found.put(entry.getKey().toString(), offset == null ? null : offset(offset));
        }
        return found;
    }

    private static Object offset(OffsetAndMetadata offset) {
        List<Object> known = new ArrayList<>();
        known.add(offset.offset());
        known.add(offset.leaderEpoch().orElse(null));
        known.add(offset.metadata());
        return known;
    }

    private static Object alterOffset(Admin admin, JsonNode question) throws Exception {
        OffsetAndMetadata offset = new OffsetAndMetadata(
                question.get("offset").longValue(), Optional.of(0), question.get("metadata").textValue());
        return Administration.get(
                admin.alterConsumerGroupOffsets(group(question), Collections.singletonMap(partition(question), offset)).all());
    }

    private static Object deleteOffset(Admin admin, JsonNode question) throws Exception {
        Set<TopicPartition> partitions = Collections.singleton(partition(question));
        return Administration.get(admin.deleteConsumerGroupOffsets(group(question), partitions).all());
    }

    /** Those whose group.instance.id is named, or else all. */
    private static Object removeMembers(Admin admin, JsonNode question) throws Exception {
        RemoveMembersFromConsumerGroupOptions options = question.has("instance")
                ? new RemoveMembersFromConsumerGroupOptions(Collections.singleton(new MemberToRemove(question.get("instance").textValue())))
                : new RemoveMembersFromConsumerGroupOptions();
        return Administration.get(admin.removeMembersFromConsumerGroup(group(question), options).all());
    }

    private static Set<GroupType> types(JsonNode question) {
        Set<GroupType> types = new HashSet<>();
        question.get("types").forEach(type -> types.add(GroupType.parse(type.textValue())));
        return types;
    }

    private static List<String> names(Set<TopicPartition> partitions) {
        List<String> names = new ArrayList<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        Collections.sort(names);
        return names;
    }

    private static String text(Object optional) {
        return ((Optional<?>) optional).map(Object::toString).orElse("");
    }

    private static Object future(Object future) throws Exception {
        return Administration.get((KafkaFuture<?>) future);
    }

    private static String group(JsonNode question) {
        return question.get("group").textValue();
    }

    private static TopicPartition partition(JsonNode question) {
        return new TopicPartition(question.get("topic").textValue(), question.get("partition").intValue());
    }

    private GroupAdministration() {}
}
