"""Commands that a test interrupts."""

LISTEN_TO_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""A shell starts what runs in the background with interrupts ignored, and its children inherit that: put this first."""
