"""Ottla: a Kafka-compatible event streaming platform in Python.

Importing this package is cheap: nothing is compiled and no optional library is loaded until it is used.
"""

__version__ = "0.1.0.dev0"
