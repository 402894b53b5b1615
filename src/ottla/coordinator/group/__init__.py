"""Consumer groups: the classic protocol, the consumer protocol, and the offsets that both commit."""
