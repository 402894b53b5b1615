"""The shipped code in a world of its own: virtual time, seeded chance, and a disk that can lose its power.

Every run is repeatable from its seed: nothing here asks the machine for time, randomness, threads or files.
"""

from ottla.sim.chance import SimChance
from ottla.sim.clock import SimClock
from ottla.sim.disk import SimDisk
from ottla.sim.faults import PowerCutError
from ottla.sim.loop import HaltedError, SimLoop

__all__ = ["HaltedError", "PowerCutError", "SimChance", "SimClock", "SimDisk", "SimLoop"]
