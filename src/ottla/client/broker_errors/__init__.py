"""The error codes of brokers as exceptions: one class for each that a user of a client may want to catch."""
