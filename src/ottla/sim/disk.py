"""A disk in memory that knows what was synced, loses its power, fills up, fails and rots."""

import errno
import os
from random import Random
from typing import Final

from ottla.ports.disk import Bytes
from ottla.sim.faults import (
    Mood,
    NameChange,
    PowerCutError,
    Resize,
    Write,
    overwrite,
    resize,
    surviving_bytes,
    surviving_names,
)

ENDLESS_BYTES: Final = 2**60


class _Content:
    """What is in a file, whatever its name."""

    __slots__ = ("data", "durable", "unsynced")

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.durable = bytes(data)
        self.unsynced: list[Write | Resize] = []

    def after_power_cut(self, chance: Random, mood: Mood) -> "_Content":
        return _Content(surviving_bytes(self.durable, self.unsynced, chance, mood))

    def sync(self) -> None:
        if self.unsynced:
            self.durable = bytes(self.data)
            self.unsynced.clear()


class _Folder:
    """Names, each of a file or a folder."""

    __slots__ = ("durable", "names", "unsynced")

    def __init__(self, names: "dict[str, _Content | _Folder]") -> None:
        self.names = names
        self.durable = dict(names)
        self.unsynced: list[NameChange[_Content | _Folder]] = []

    def add(self, name: str, node: "_Content | _Folder") -> None:
        self.names[name] = node
        self.unsynced.append(NameChange(None, name, node))

    def remove(self, name: str) -> None:
        self.unsynced.append(NameChange(name, None, self.names.pop(name)))

    def rename(self, old: str, new: str) -> None:
        node = self.names.pop(old)
        self.names[new] = node
        self.unsynced.append(NameChange(old, new, node))

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.unsynced.clear()

    def after_power_cut(self, chance: Random, mood: Mood) -> "_Folder":
        names = surviving_names(self.durable, self.unsynced, chance, mood)
        return _Folder({name: names[name].after_power_cut(chance, mood) for name in sorted(names)})

    def size(self) -> int:
        return sum(len(node.data) if isinstance(node, _Content) else node.size() for node in self.names.values())


class SimFile:
    """An open file of a `SimDisk`."""

    __slots__ = ("_content", "_disk", "_name")

    def __init__(self, disk: "SimDisk", name: str, content: _Content) -> None:
        self._disk = disk
        self._name = name
        self._content = content

    def append(self, *buffers: Bytes) -> None:
        """Write at the end, all or nothing."""
        self.write_at(len(self._content.data), b"".join(buffers))

    def reserve(self, size: int) -> None:
        """Nothing: this is but a hint."""

    def write_at(self, position: int, data: Bytes) -> None:
        """Write over what is there, and beyond its end."""
        self._disk.step()
        self._disk.claim(position + len(data) - len(self._content.data))
        # A copy: the caller may go on to use its buffer.
        write = Write(position, bytes(data))
        self._content.unsynced.append(write)
        overwrite(self._content.data, *write)

    def read_at(self, position: int, length: int) -> bytes:
        """Up to so many bytes."""
        return bytes(self._content.data[position : position + length])

    def read_cached(self, position: int, length: int) -> bytes | None:
        """The same: all is in memory here."""
        return self.read_at(position, length)

    def send_cached(self, socket_descriptor: int, position: int, length: int) -> int | None:
        """Never: there are no sockets here."""
        return None

    def sendable(self, position: int, length: int) -> int | None:
        """Nor is there a descriptor."""
        return None

    def size(self) -> int:
        """Bytes in the file."""
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it with zeros."""
        self._disk.step()
        self._disk.claim(size - len(self._content.data))
        self._content.unsynced.append(Resize(size))
        resize(self._content.data, size)

    def sync(self) -> None:
        """Make the content durable, though not the file's name."""
        self._disk.step()
        self._disk.check_sync(self._name)
        self._content.sync()


class SimDisk:
    """Files and folders in memory; implements `ottla.ports.Disk`.

    >>> disk = SimDisk()
    >>> file = disk.open("a", create=True)
    >>> file.append(b"synced"); file.sync(); disk.sync_folder()
    >>> file.append(b", and not")
    >>> disk.read("a"), disk.power_cut(Random(3)).read("a")
    (b'synced, and not', b'synced')
    """

    root = "a simulated disk"

    def __init__(self) -> None:
        self._root = _Folder({})
        self._is_locked = False
        self.operations = 0
        """Changes and syncs so far."""
        self.operations_left: int | None = None
        """How many more there is power for; None if it never fails."""
        self.capacity_bytes: int | None = None
        """What fits on the disk; None if it is never full."""
        self.failing_sync: str | None = None
        """Syncs fail for files and folders whose name has this in it."""

    # Faults.

    @property
    def is_out(self) -> bool:
        """Whether the power is gone."""
        return self.operations_left == 0

    def power_cut(self, chance: Random) -> "SimDisk":
        """The disk as it might look when the power is back."""
        found = SimDisk()
        found._root = self._root.after_power_cut(chance, Mood.draw(chance))
        found.capacity_bytes = self.capacity_bytes
        return found

    def kill(self) -> "SimDisk":
        """The disk as another process finds it after this one has ended: all is there, synced or not."""
        found = SimDisk()
        found._root = self._root
        found.capacity_bytes = self.capacity_bytes
        return found

    def flip(self, name: str, position: int, mask: int = 0x01) -> None:
        """Let bits of one byte rot."""
        content = self._content(name)
        content.data[position] ^= mask
        content.durable = bytes(content.data)
        content.unsynced.clear()

    def cut(self, name: str, size: int) -> None:
        """Let the end of a file get lost."""
        content = self._content(name)
        resize(content.data, size)
        content.durable = bytes(content.data)
        content.unsynced.clear()

    def step(self) -> None:
        """One more change or sync, if there is power for it."""
        if self.operations_left is not None:
            if self.operations_left == 0:
                raise PowerCutError
            self.operations_left -= 1
            if self.operations_left == 0:
                raise PowerCutError
        self.operations += 1

    def claim(self, size: int) -> None:
        """Take room on the disk, if there is any."""
        if self.capacity_bytes is not None and size > 0 and self._root.size() + size > self.capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def check_sync(self, name: str) -> None:
        """Fail if syncs of this name are to."""
        if self.failing_sync is not None and self.failing_sync in name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    # The port.

    def open(self, name: str, *, create: bool = False) -> SimFile:
        """Open a file for reading and writing."""
        folder, last = self._parent(name)
        if last not in folder.names:
            if not create:
                raise _missing(name)
            self.step()
            folder.add(last, _Content(bytearray()))
        return SimFile(self, name, self._content(name))

    def reserve(self, name: str, size: int) -> None:
        """See that there is room for a file; nothing is kept free of others."""
        self.claim(size - len(self._content(name).data))

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of that name."""
        try:
            folder, last = self._parent(name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return last in folder.names

    def list(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted."""
        return sorted(self._folder(folder).names)

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it."""
        at = self._root
        for part in name.split("/"):
            node = at.names.get(part)
            if node is None:
                self.step()
                node = _Folder({})
                at.add(part, node)
            if not isinstance(node, _Folder):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            at = node

    def remove(self, name: str) -> None:
        """Remove a file; fine if it is not there."""
        if self.exists(name):
            folder, last = self._parent(name)
            self.step()
            folder.remove(last)

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all in it; fine if it is not there."""
        if not self.exists(name):
            return
        for each in self.list(name):
            inner = f"{name}/{each}"
            if isinstance(self._node(inner), _Folder):
                self.remove_folder(inner)
            else:
                self.remove(inner)
        self.remove(name)

    def rename(self, old: str, new: str) -> None:
        """Rename within a folder, as one step."""
        folder, last = self._parent(old)
        target, target_last = self._parent(new)
        if target is not folder:
            raise NotImplementedError(f"{old} and {new} are in different folders, where no log renames anything")
        if last not in folder.names:
            raise _missing(old)
        self.step()
        folder.rename(last, target_last)

    def sync_folder(self, name: str = "") -> None:
        """Make the names in a folder durable."""
        folder = self._folder(name)
        self.step()
        self.check_sync(name)
        folder.sync()

    def read(self, name: str) -> bytes:
        """A whole small file."""
        return bytes(self._content(name).data)

    def replace(self, name: str, data: bytes) -> None:
        """Put a small file in place of another as one step, by the steps that `SystemDisk` takes."""
        fresh = name + ".tmp"
        file = self.open(fresh, create=True)
        file.truncate(0)
        file.append(data)
        file.sync()
        self.rename(fresh, name)
        self.sync_folder(name.rpartition("/")[0])

    def usage(self) -> tuple[int, int]:
        """Total and free bytes of the disk."""
        total = ENDLESS_BYTES if self.capacity_bytes is None else self.capacity_bytes
        return total, max(0, total - self._root.size())

    def lock(self) -> None:
        """Claim the root."""
        if self._is_locked:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._is_locked = True

    def unlock(self) -> None:
        """Give the root back."""
        self._is_locked = False

    # Finding one's way.

    def _node(self, name: str) -> _Content | _Folder:
        node: _Content | _Folder = self._root
        for part in name.split("/") if name else ():
            if not isinstance(node, _Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            if part not in node.names:
                raise _missing(name)
            node = node.names[part]
        return node

    def _folder(self, name: str) -> _Folder:
        node = self._node(name)
        if not isinstance(node, _Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return node

    def _content(self, name: str) -> _Content:
        node = self._node(name)
        if isinstance(node, _Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        return node

    def _parent(self, name: str) -> tuple[_Folder, str]:
        above, _, last = name.rpartition("/")
        return self._folder(above), last


def _missing(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
