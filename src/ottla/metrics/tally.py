"""What is added up for each request: compiled, where there is a compiler."""

from typing import TYPE_CHECKING

from ottla.native import load_compiled

if TYPE_CHECKING or load_compiled("ottla.metrics._counting") is None:
    from ottla.metrics._counting_twin import ApiTally, ClientTally, Tally
else:
    from ottla.metrics._counting import ApiTally, ClientTally, Tally

__all__ = ["ApiTally", "ClientTally", "Tally"]
