"""The Kafka protocol as bytes: no IO, no clock, nothing but the standard library."""
