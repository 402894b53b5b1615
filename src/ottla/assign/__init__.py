"""Who reads which partitions: strategies by name, for the coordinator and the client alike."""
