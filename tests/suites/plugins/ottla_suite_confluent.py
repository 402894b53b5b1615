"""A pytest plugin for confluent-kafka's suite: what its shared fixtures import, and no test that is run here needs.

They reach for a cluster that they could start themselves, and for the schema registry's client with its dependencies.
"""

import sys
from unittest.mock import MagicMock

UNUSED = (
    "confluent_kafka.avro",
    "trivup",
    "trivup.clusters",
    "trivup.clusters.KafkaCluster",
    "confluent_kafka.schema_registry",
    "confluent_kafka.schema_registry._async",
    "confluent_kafka.schema_registry._async.schema_registry_client",
    "confluent_kafka.schema_registry.schema_registry_client",
)

for name in UNUSED:
    sys.modules[name] = MagicMock(name=name)
