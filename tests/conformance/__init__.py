"""The codec held against other people's code: `python -m tests.conformance` prints what checked what."""
