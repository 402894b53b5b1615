"""Bytes written by hand for the messages of Streams groups; `golden` says how to read them."""

from ottla.wire.api import streams_group_describe as describe
from ottla.wire.api import streams_group_heartbeat as heartbeat
from ottla.wire.api import streams_group_topology_description_update as update

from .golden import Golden

STREAMS_GOLDEN = (
    Golden(
        heartbeat.StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=1,
            endpoint_information_epoch=2,
            instance_id="i",
            rack_id=None,
            rebalance_timeout_ms=1000,
            topology=heartbeat.Topology(
                epoch=3,
                subtopologies=[
                    heartbeat.Subtopology(
                        subtopology_id="s",
                        source_topics=["t"],
                        source_topic_regex=["r.*"],
                        state_changelog_topics=[
                            heartbeat.TopicInfo(
                                name="c",
                                partitions=4,
                                replication_factor=3,
                                topic_configs=[heartbeat.KeyValue(key="k", value="v")],
                            )
                        ],
                        repartition_sink_topics=["p"],
                        repartition_source_topics=[heartbeat.TopicInfo(name="q")],
                        copartition_groups=[
                            heartbeat.CopartitionGroup(
                                source_topics=[0], source_topic_regex=[1], repartition_source_topics=[2, 3]
                            )
                        ],
                    )
                ],
            ),
            active_tasks=[heartbeat.TaskIds(subtopology_id="s", partitions=[8])],
            standby_tasks=[],
            warmup_tasks=None,
            process_id="p1",
            user_endpoint=heartbeat.Endpoint(host="h", port=65000),
            client_tags=[heartbeat.KeyValue(key="z", value="1")],
            task_offsets=[heartbeat.TaskOffset(subtopology_id="s", partition=8, offset=99)],
            task_end_offsets=None,
            shutdown_application=True,
        ),
        1,
        """
        02 "g"                     # GroupId
        02 "m"                     # MemberId
        00 00 00 01                # MemberEpoch
        00 00 00 02                # EndpointInformationEpoch
        02 "i"                     # InstanceId
        00                         # RackId: null
        00 00 03 e8                # RebalanceTimeoutMs
        01                         # Topology: present
        00 00 00 03                #   Epoch
        02                         #   Subtopologies: one
        02 "s"                     #     SubtopologyId
        02 02 "t"                  #     SourceTopics
        02 04 "r.*"                #     SourceTopicRegex
        02                         #     StateChangelogTopics: one
        02 "c"                     #       Name
        00 00 00 04                #       Partitions
        00 03                      #       ReplicationFactor
        02                         #       TopicConfigs: one
        02 "k"                     #         Key
        02 "v"                     #         Value
        00                         #         tagged fields: none
        00                         #       tagged fields: none
        02 02 "p"                  #     RepartitionSinkTopics
        02                         #     RepartitionSourceTopics: one
        02 "q"                     #       Name
        00 00 00 00                #       Partitions
        00 00                      #       ReplicationFactor
        01                         #       TopicConfigs: empty
        00                         #       tagged fields: none
        02                         #     CopartitionGroups: one
        02 00 00                   #       SourceTopics
        02 00 01                   #       SourceTopicRegex
        03 00 02 00 03             #       RepartitionSourceTopics
        00                         #       tagged fields: none
        00                         #     tagged fields: none
        00                         #   tagged fields: none
        02                         # ActiveTasks: one
        02 "s"                     #   SubtopologyId
        02 00 00 00 08             #   Partitions
        00                         #   tagged fields: none
        01                         # StandbyTasks: empty
        00                         # WarmupTasks: null
        03 "p1"                    # ProcessId
        01                         # UserEndpoint: present
        02 "h"                     #   Host
        fd e8                      #   Port, unsigned
        00                         #   tagged fields: none
        02                         # ClientTags: one
        02 "z"                     #   Key
        02 "1"                     #   Value
        00                         #   tagged fields: none
        02                         # TaskOffsets: one
        02 "s"                     #   SubtopologyId
        00 00 00 08                #   Partition
        00 00 00 00 00 00 00 63    #   Offset
        00                         #   tagged fields: none
        00                         # TaskEndOffsets: null
        01                         # ShutdownApplication
        00                         # tagged fields: none
        """,
    ),
    Golden(
        heartbeat.StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1),
        1,
        """
        02 "g"                     # GroupId
        02 "m"                     # MemberId
        ff ff ff ff                # MemberEpoch
        00 00 00 00                # EndpointInformationEpoch
        00                         # InstanceId: null
        00                         # RackId: null
        ff ff ff ff                # RebalanceTimeoutMs: -1, its default
        ff                         # Topology: null
        00                         # ActiveTasks: null
        00                         # StandbyTasks: null
        00                         # WarmupTasks: null
        00                         # ProcessId: null
        ff                         # UserEndpoint: null
        00                         # ClientTags: null
        00                         # TaskOffsets: null
        00                         # TaskEndOffsets: null
        00                         # ShutdownApplication
        00                         # tagged fields: none
        """,
    ),
    Golden(
        heartbeat.StreamsGroupHeartbeatResponse(
            throttle_time_ms=1,
            error_code=0,
            error_message=None,
            member_id="m",
            member_epoch=2,
            heartbeat_interval_ms=3,
            task_offset_interval_ms=4,
            acceptable_recovery_lag=5,
            status=[heartbeat.Status(status_code=6, status_detail="d")],
            active_tasks=[heartbeat.TaskIds(subtopology_id="s", partitions=[7])],
            standby_tasks=None,
            warmup_tasks=[],
            topology_description_required=True,
            endpoint_information_epoch=8,
            partitions_by_user_endpoint=[
                heartbeat.EndpointToPartitions(
                    user_endpoint=heartbeat.Endpoint(host="h", port=9092),
                    active_partitions=[heartbeat.TopicPartition(topic="t", partitions=[9])],
                    standby_partitions=[],
                )
            ],
        ),
        1,
        """
        00 00 00 01                # ThrottleTimeMs
        00 00                      # ErrorCode
        00                         # ErrorMessage: null
        02 "m"                     # MemberId
        00 00 00 02                # MemberEpoch
        00 00 00 03                # HeartbeatIntervalMs
        00 00 00 04                # TaskOffsetIntervalMs; AcceptableRecoveryLagLegacy before it went with v0
        00 00 00 00 00 00 00 05    # AcceptableRecoveryLag
        02                         # Status: one
        06                         #   StatusCode
        02 "d"                     #   StatusDetail
        00                         #   tagged fields: none
        02                         # ActiveTasks: one
        02 "s"                     #   SubtopologyId
        02 00 00 00 07             #   Partitions
        00                         #   tagged fields: none
        00                         # StandbyTasks: null
        01                         # WarmupTasks: empty
        01                         # TopologyDescriptionRequired
        00 00 00 08                # EndpointInformationEpoch
        02                         # PartitionsByUserEndpoint: one
        02 "h"                     #   UserEndpoint, never null: Host
        23 84                      #     Port
        00                         #     tagged fields: none
        02                         #   ActivePartitions: one
        02 "t"                     #     Topic
        02 00 00 00 09             #     Partitions
        00                         #     tagged fields: none
        01                         #   StandbyPartitions: empty
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    Golden(
        describe.StreamsGroupDescribeRequest(
            group_ids=["g", "h"], include_authorized_operations=True, include_topology_description=True
        ),
        1,
        """
        03 02 "g" 02 "h"           # GroupIds: two
        01                         # IncludeAuthorizedOperations
        01                         # IncludeTopologyDescription
        00                         # tagged fields: none
        """,
    ),
    Golden(
        describe.StreamsGroupDescribeResponse(
            throttle_time_ms=1,
            groups=[
                describe.DescribedGroup(
                    error_code=2,
                    error_message="e",
                    group_id="g",
                    group_state="Stable",
                    group_epoch=3,
                    assignment_epoch=4,
                    topology=describe.Topology(
                        epoch=5,
                        subtopologies=[
                            describe.Subtopology(
                                subtopology_id="s",
                                source_topics=["t"],
                                repartition_sink_topics=["p"],
                                state_changelog_topics=[
                                    describe.TopicInfo(
                                        name="c",
                                        partitions=6,
                                        replication_factor=7,
                                        topic_configs=[describe.KeyValue(key="k", value="v")],
                                    )
                                ],
                                repartition_source_topics=[],
                            )
                        ],
                    ),
                    members=[
                        describe.Member(
                            member_id="m",
                            member_epoch=8,
                            instance_id="i",
                            rack_id="r",
                            client_id="c",
                            client_host="h",
                            topology_epoch=9,
                            process_id="p",
                            user_endpoint=describe.Endpoint(host="u", port=10),
                            client_tags=[describe.KeyValue(key="a", value="b")],
                            task_offsets=[describe.TaskOffset(subtopology_id="s", partition=11, offset=12)],
                            task_end_offsets=[describe.TaskOffset(subtopology_id="s", partition=13, offset=14)],
                            assignment=describe.Assignment(
                                active_tasks=[describe.TaskIds(subtopology_id="s", partitions=[15])],
                                standby_tasks=[describe.TaskIds(subtopology_id="s", partitions=[])],
                                warmup_tasks=[],
                            ),
                            target_assignment=describe.Assignment(
                                warmup_tasks=[describe.TaskIds(subtopology_id="s", partitions=[16, 17])]
                            ),
                            is_classic=True,
                        )
                    ],
                    authorized_operations=18,
                    topology_description=describe.TopologyDescription(
                        subtopologies=[
                            describe.TopologyDescriptionSubtopology(
                                subtopology_id="s",
                                nodes=[
                                    describe.TopologyDescriptionNode(
                                        name="n",
                                        node_type=1,
                                        source_topics=["t"],
                                        sink_topic="o",
                                        stores=["w"],
                                        successors=["x"],
                                    )
                                ],
                            )
                        ],
                        global_stores=[
                            describe.TopologyDescriptionGlobalStore(
                                source=describe.TopologyDescriptionNode(name="f", node_type=2),
                                processor=describe.TopologyDescriptionNode(name="y", node_type=3, stores=["w"]),
                            )
                        ],
                    ),
                    topology_description_status=19,
                    assignor_name="z",
                )
            ],
        ),
        1,
        """
        00 00 00 01                # ThrottleTimeMs
        02                         # Groups: one
        00 02                      #   ErrorCode
        02 "e"                     #   ErrorMessage
        02 "g"                     #   GroupId
        07 "Stable"                #   GroupState
        00 00 00 03                #   GroupEpoch
        00 00 00 04                #   AssignmentEpoch
        01                         #   Topology: present
        00 00 00 05                #     Epoch
        02                         #     Subtopologies: one
        02 "s"                     #       SubtopologyId
        02 02 "t"                  #       SourceTopics
        02 02 "p"                  #       RepartitionSinkTopics
        02                         #       StateChangelogTopics: one
        02 "c"                     #         Name
        00 00 00 06                #         Partitions
        00 07                      #         ReplicationFactor
        02                         #         TopicConfigs: one
        02 "k"                     #           Key
        02 "v"                     #           Value
        00                         #           tagged fields: none
        00                         #         tagged fields: none
        01                         #       RepartitionSourceTopics: empty
        00                         #       tagged fields: none
        00                         #     tagged fields: none
        02                         #   Members: one
        02 "m"                     #     MemberId
        00 00 00 08                #     MemberEpoch
        02 "i"                     #     InstanceId
        02 "r"                     #     RackId
        02 "c"                     #     ClientId
        02 "h"                     #     ClientHost
        00 00 00 09                #     TopologyEpoch
        02 "p"                     #     ProcessId
        01                         #     UserEndpoint: present
        02 "u"                     #       Host
        00 0a                      #       Port
        00                         #       tagged fields: none
        02                         #     ClientTags: one
        02 "a"                     #       Key
        02 "b"                     #       Value
        00                         #       tagged fields: none
        02                         #     TaskOffsets: one
        02 "s"                     #       SubtopologyId
        00 00 00 0b                #       Partition
        00 00 00 00 00 00 00 0c    #       Offset
        00                         #       tagged fields: none
        02                         #     TaskEndOffsets: one
        02 "s"                     #       SubtopologyId
        00 00 00 0d                #       Partition
        00 00 00 00 00 00 00 0e    #       Offset
        00                         #       tagged fields: none
        02                         #     Assignment, never null: ActiveTasks: one
        02 "s"                     #         SubtopologyId
        02 00 00 00 0f             #         Partitions
        00                         #         tagged fields: none
        02                         #       StandbyTasks: one
        02 "s"                     #         SubtopologyId
        01                         #         Partitions: empty
        00                         #         tagged fields: none
        01                         #       WarmupTasks: empty
        00                         #       tagged fields: none
        01                         #     TargetAssignment, never null: ActiveTasks: empty
        01                         #       StandbyTasks: empty
        02                         #       WarmupTasks: one
        02 "s"                     #         SubtopologyId
        03 00 00 00 10 00 00 00 11 #         Partitions
        00                         #         tagged fields: none
        00                         #       tagged fields: none
        01                         #     IsClassic
        00                         #     tagged fields: none
        00 00 00 12                #   AuthorizedOperations
        01                         #   TopologyDescription: present
        02                         #     Subtopologies: one
        02 "s"                     #       SubtopologyId
        02                         #       Nodes: one
        02 "n"                     #         Name
        01                         #         NodeType
        02 02 "t"                  #         SourceTopics
        02 "o"                     #         SinkTopic
        02 02 "w"                  #         Stores
        02 02 "x"                  #         Successors
        00                         #         tagged fields: none
        00                         #       tagged fields: none
        02                         #     GlobalStores: one
        02 "f"                     #       Source, never null: Name
        02                         #         NodeType
        01                         #         SourceTopics: empty
        00                         #         SinkTopic: null
        01                         #         Stores: empty
        01                         #         Successors: empty
        00                         #         tagged fields: none
        02 "y"                     #       Processor, never null: Name
        03                         #         NodeType
        01                         #         SourceTopics: empty
        00                         #         SinkTopic: null
        02 02 "w"                  #         Stores
        01                         #         Successors: empty
        00                         #         tagged fields: none
        00                         #       tagged fields: none
        00                         #     tagged fields: none
        13                         #   TopologyDescriptionStatus
        02 "z"                     #   AssignorName
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    Golden(
        describe.StreamsGroupDescribeResponse(groups=[describe.DescribedGroup(group_id="g", error_code=69)]),
        1,
        """
        00 00 00 00                # ThrottleTimeMs
        02                         # Groups: one
        00 45                      #   ErrorCode
        00                         #   ErrorMessage: null
        02 "g"                     #   GroupId
        01                         #   GroupState: empty
        00 00 00 00                #   GroupEpoch
        00 00 00 00                #   AssignmentEpoch
        ff                         #   Topology: null
        01                         #   Members: empty
        80 00 00 00                #   AuthorizedOperations: -2147483648, its default
        ff                         #   TopologyDescription: null
        00                         #   TopologyDescriptionStatus
        00                         #   AssignorName: null
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    Golden(
        update.StreamsGroupTopologyDescriptionUpdateRequest(
            group_id="g",
            member_id="m",
            topology_epoch=1,
            topology_description=update.TopologyDescription(
                subtopologies=[
                    update.TopologyDescriptionSubtopology(
                        subtopology_id="s",
                        nodes=[
                            update.TopologyDescriptionNode(
                                name="n",
                                node_type=2,
                                source_topics=["t"],
                                sink_topic="o",
                                stores=["w"],
                                successors=["x", "y"],
                            )
                        ],
                    )
                ],
                global_stores=[
                    update.TopologyDescriptionGlobalStore(
                        source=update.TopologyDescriptionNode(name="f", node_type=3, source_topics=["u"]),
                        processor=update.TopologyDescriptionNode(name="q", node_type=4),
                    )
                ],
            ),
        ),
        0,
        """
        02 "g"                     # GroupId
        02 "m"                     # MemberId
        00 00 00 01                # TopologyEpoch
        02                         # TopologyDescription, never null: Subtopologies: one
        02 "s"                     #     SubtopologyId
        02                         #     Nodes: one
        02 "n"                     #       Name
        02                         #       NodeType
        02 02 "t"                  #       SourceTopics
        02 "o"                     #       SinkTopic
        02 02 "w"                  #       Stores
        03 02 "x" 02 "y"           #       Successors
        00                         #       tagged fields: none
        00                         #     tagged fields: none
        02                         #   GlobalStores: one
        02 "f"                     #     Source, never null: Name
        03                         #       NodeType
        02 02 "u"                  #       SourceTopics
        00                         #       SinkTopic: null
        01                         #       Stores: empty
        01                         #       Successors: empty
        00                         #       tagged fields: none
        02 "q"                     #     Processor, never null: Name
        04                         #       NodeType
        01                         #       SourceTopics: empty
        00                         #       SinkTopic: null
        01                         #       Stores: empty
        01                         #       Successors: empty
        00                         #       tagged fields: none
        00                         #     tagged fields: none
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    Golden(
        update.StreamsGroupTopologyDescriptionUpdateResponse(throttle_time_ms=1, error_code=135, error_message="late"),
        0,
        """
        00 00 00 01                # ThrottleTimeMs
        00 87                      # ErrorCode
        05 "late"                  # ErrorMessage
        00                         # tagged fields: none
        """,
    ),
)
