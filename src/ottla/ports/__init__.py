"""What the world hands in: clock, disk, chance. Nothing above calls time, random or open by itself.

The event loop, with its timers, sockets and executor, is the fifth: code takes the running asyncio loop, which under
simulation is one with virtual time.
"""

from ottla.ports.chance import Chance, SystemChance
from ottla.ports.clock import Clock, SystemClock, system_now_ms
from ottla.ports.disk import Disk, File, FileSlice, SystemDisk

__all__ = ["Chance", "Clock", "Disk", "File", "FileSlice", "SystemChance", "SystemClock", "SystemDisk", "system_now_ms"]
