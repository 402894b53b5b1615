"""One partition on one disk, in Kafka's own folder layout and segment format."""
