"""The logic of the benchmarks: what they make of what they measure, and that their loads measure what they say."""
