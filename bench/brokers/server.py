"""A broker as a process of its own, whoever made it: started, paused, killed and looked at from outside."""

import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from tests.peers.ports import ReservedPort

from bench.caller import Caller, frame
from ottla.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.api.delete_topics import DeleteTopicsRequest
from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic

from . import usage
from .frames import reply_to

START_SECONDS, STOP_SECONDS = 120.0, 120.0
DELETION_SECONDS = 10.0
POLL_SECONDS = 0.005
METADATA_VERSION = 4
CREATE_VERSION, DELETE_VERSION, LIST_OFFSETS_VERSION = 4, 3, 4
LATEST = -1
TOPIC_EXISTS = 36
LOG_TAIL = 3_000


class Server(ABC):
    """One broker with its folder. What it says goes to a file there, which explains a failed start."""

    title: ClassVar[str]
    keeps_records: ClassVar[bool] = True
    """Whether what was produced can be consumed, however much it is."""
    starts_again: ClassVar[bool] = True
    """Whether its data survives its process."""
    most_partitions: ClassVar[int] = 1_000
    serves_java: ClassVar[bool] = True
    """Whether Kafka's own clients get on with it."""
    keeps_batches: ClassVar[bool] = True
    """Whether a fetch gives the batches that were produced, byte for byte, and as many as it was asked for."""
    share: ClassVar[float] = 1.0
    """How much of a load it gets where the figure is a rate, so that slow ones take as long over a run as others."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self._process: subprocess.Popen[bytes] | None = None
        self._topics = 0

    @classmethod  # noqa: B027
    def build(cls) -> None:
        """What has to be done once for all runs, however long it takes; RuntimeError if it cannot be."""

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it."""

    def prepare(self) -> None:  # noqa: B027
        """What has to be done once, before the first start."""

    def launch(self) -> None:
        """Start its process, and do not wait."""
        assert self._process is None, "it runs already"
        command = self.command()
        if guard := shutil.which("setpriv"):
            # However this process ends, its brokers end with it.
            command = [guard, "--pdeathsig", "KILL", *command]
        with self._log_file.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def start(self) -> Self:
        """Start it, and return when it answers."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            self.check_alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.title} did not answer in {START_SECONDS:.0f} s:\n{self._log_tail()}")
            time.sleep(POLL_SECONDS)
        return self

    def check_alive(self) -> None:
        """RuntimeError, with what it said last, if its process has ended."""
        assert self._process is not None
        if (status := self._process.poll()) is not None:
            raise RuntimeError(f"{self.title} ended with status {status}:\n{self._log_tail()}")

    def stop(self) -> None:
        """Stop it cleanly."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Have it stand still, so that it costs the others nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End a pause."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        try:
            self.kill()
        finally:
            self._reserved.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.prepare()
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self.port

    @property
    def bootstrap(self) -> str:
        """The same, as clients want it."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def cpu_seconds(self) -> float:
        """The processor time that it has taken so far, children included."""
        return usage.cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        """The memory that it has now, children included."""
        return usage.resident_bytes(self.pid)

    def new_topic(self, partitions: int = 1) -> str:
        """A topic that is ready to be written to."""
        self._topics += 1
        name = f"bench-{self._topics}"
        with Caller(self.address) as caller:
            self._create(caller, name, partitions)
            deadline = time.monotonic() + START_SECONDS
            while not self._is_led(caller, name):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.title} has no leader for each partition of {name}")
                time.sleep(POLL_SECONDS)
        return name

    def delete_topic(self, name: str) -> None:
        """Be rid of a topic, and of its files: the system would write them to the disk while others have their turn."""
        with Caller(self.address) as caller:
            request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
            reply = reply_to(DeleteTopicsRequest, DELETE_VERSION, caller.call(frame(request, DELETE_VERSION)))
        if code := reply.responses[0].error_code:
            raise RuntimeError(f"{self.title} did not delete {name}: error {code}")
        deadline = time.monotonic() + DELETION_SECONDS
        while any(self.folder.glob(f"data/{name}-*")) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def end_offsets(self, name: str, partitions: int) -> list[int]:
        """How many records each partition of a topic has had."""
        wanted = [ListOffsetsPartition(partition_index=each, timestamp=LATEST) for each in range(partitions)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=wanted)])
        with Caller(self.address) as caller:
            data = caller.call(frame(request, LIST_OFFSETS_VERSION))
        found = reply_to(ListOffsetsRequest, LIST_OFFSETS_VERSION, data).topics[0].partitions
        return [each.offset for each in found]

    def _create(self, caller: Caller, name: str, partitions: int) -> None:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        reply = reply_to(CreateTopicsRequest, CREATE_VERSION, caller.call(frame(request, CREATE_VERSION)))
        if (code := reply.topics[0].error_code) not in (0, TOPIC_EXISTS):
            raise RuntimeError(f"{self.title} did not create {name}: error {code}")

    def _is_led(self, caller: Caller, name: str) -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        data = caller.call(frame(request, METADATA_VERSION))
        topic = reply_to(MetadataRequest, METADATA_VERSION, data).topics[0]
        return not topic.error_code and all(each.leader_id >= 0 for each in topic.partitions)

    def _answers(self) -> bool:
        """Whether it lists itself among the brokers: Kafka answers before its controller lets it serve clients."""
        try:
            with Caller(self.address) as caller:
                data = caller.call(frame(MetadataRequest(topics=[]), METADATA_VERSION))
        except OSError:
            return False
        return bool(reply_to(MetadataRequest, METADATA_VERSION, data).brokers)

    def _signal(self, which: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(which)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(STOP_SECONDS)
            finally:
                process.kill()

    @property
    def _log_file(self) -> Path:
        return self.folder / "output.log"

    def _log_tail(self) -> str:
        return self._log_file.read_text(errors="replace")[-LOG_TAIL:]
