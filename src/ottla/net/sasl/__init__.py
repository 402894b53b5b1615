"""SASL: who a client is. Both sides of each mechanism, without sockets."""
