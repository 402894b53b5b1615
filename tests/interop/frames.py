"""Frames out of bytes that are there already, by the code that receives them from sockets."""

from ottla.net.receiving import FrameTooLargeError, Receiver, scratch


class FrameReader:
    """A receiver that is fed."""

    def __init__(self, max_size: int, scratch_bytes: int = 64 * 1024) -> None:
        self._receiver = Receiver(max_size, scratch(scratch_bytes))

    @property
    def mid_frame(self) -> bool:
        return self._receiver.mid_frame

    @property
    def missing(self) -> int:
        return self._receiver.missing

    @property
    def failure(self) -> FrameTooLargeError | None:
        return self._receiver.failure

    def feed(self, data: bytes) -> list[bytes]:
        """Take some bytes; return the frames that they complete."""
        if self._receiver.failure is not None:
            raise self._receiver.failure
        frames: list[bytes] = []
        while data and self._receiver.failure is None:
            with self._receiver.room() as room:
                count = min(len(room), len(data))
                room[:count] = data[:count]
            frames += map(bytes, self._receiver.received(count))
            data = data[count:]
        return frames
