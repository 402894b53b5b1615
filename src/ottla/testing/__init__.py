"""A real broker for tests, in the test's own process, on a free port, in a blink."""

from ottla.testing.broker import TestBroker

__all__ = ["TestBroker"]
