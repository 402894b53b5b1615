"""Talking to a cluster of any Kafka-compatible brokers: producing, consuming and administration.

Users get all of it from `ottla`. Nothing is imported here: who reads ranges in Spark has no use for the rest.
"""
