"""Open files, shared by all logs of a disk, so that an idle partition holds none."""

from collections import OrderedDict
from threading import Lock

from ottla.ports import Disk, File


class OpenFiles:
    """The files that were used last. One that falls out closes as soon as nobody sends from it any more.

    May be used from several threads.

    >>> import tempfile
    >>> from ottla.ports import SystemDisk
    >>> files = OpenFiles(SystemDisk(tempfile.mkdtemp()), limit=2)
    >>> for name in "abc":
    ...     files.create(name).append(name.encode())
    >>> len(files), files.get("a").read_at(0, 10)
    (2, b'a')
    """

    __slots__ = ("_disk", "_files", "_forgotten", "_limit", "_lock")

    def __init__(self, disk: Disk, limit: int = 1_000) -> None:
        self._disk = disk
        self._limit = limit
        self._files: OrderedDict[str, File] = OrderedDict()
        self._lock = Lock()
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._files)

    def get(self, name: str) -> File:
        """The open file of that name; FileNotFoundError if there is none."""
        return self._get(name, False)

    def get_open(self, name: str) -> File | None:
        """The file if it is open already."""
        return self._files.get(name)

    def create(self, name: str) -> File:
        """The same, made if it is not there."""
        return self._get(name, True)

    def sized(self, name: str, size: int) -> File:
        """The open file, which must have that size. OSError if another hand than the log's has changed it.

        A file knows its size from its opening and its own writes. One that a second thread opened just before a write
        through another may so come too late; it is opened anew.
        """
        file = self.get(name)
        if file.size() != size:
            self.forget(name)
            file = self.get(name)
            if file.size() != size:
                raise OSError(f"{name} has {file.size()} bytes and should have {size}; was it changed by hand?")
        return file

    def forget(self, *names: str) -> None:
        """Let go of files after they were renamed or removed."""
        with self._lock:
            self._forgotten += 1
            for name in names:
                self._files.pop(name, None)

    def forget_folder(self, folder: str) -> None:
        """Let go of all files in a folder."""
        prefix = folder + "/"
        with self._lock:
            self._forgotten += 1
            for name in [name for name in self._files if name.startswith(prefix)]:
                del self._files[name]

    def _get(self, name: str, create: bool) -> File:
        while True:
            with self._lock:
                file = self._files.get(name)
                if file is not None:
                    self._files.move_to_end(name)
                    return file
                forgotten = self._forgotten
            file = self._disk.open(name, create=create)
            with self._lock:
                # What was opened just before a rename is another file by now.
                if forgotten == self._forgotten:
                    # Two threads may have opened it at once: both must use one, since a file keeps its own size.
                    file = self._files.setdefault(name, file)
                    while len(self._files) > self._limit:
                        self._files.popitem(last=False)
                    return file
