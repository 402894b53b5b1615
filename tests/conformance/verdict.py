"""What the results add up to."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from .check import Result
from .codecs import Codec


class Verdict:
    """The codecs that were wanted, and what was said of each."""

    def __init__(self, wanted: Iterable[Codec], results: Sequence[Result]) -> None:
        self.wanted = list(wanted)
        self.by_codec: dict[Codec, list[Result]] = defaultdict(list)
        for result in results:
            self.by_codec[result.codec].append(result)

    def conforms(self, codec: Codec) -> bool:
        """Whether something really checked the codec in this run, and nothing disagreed."""
        found = self.by_codec.get(codec, [])
        return any(result.samples for result in found) and not any(result.failure for result in found)

    @property
    def conforming(self) -> list[Codec]:
        """The codecs that count."""
        return [codec for codec in self.wanted if self.conforms(codec)]

    @property
    def unchecked(self) -> list[Codec]:
        """The codecs that no oracle of this run knows and no golden bytes exist for."""
        return [codec for codec in self.wanted if not self.by_codec.get(codec)]

    @property
    def failures(self) -> list[Result]:
        """Every disagreement."""
        return [result for codec in self.wanted for result in self.by_codec.get(codec, []) if result.failure]

    @property
    def complete(self) -> bool:
        """Whether every codec counts."""
        return len(self.conforming) == len(self.wanted)

    def closing_line(self) -> str:
        """How many of how many."""
        return f"{len(self.conforming)} of {len(self.wanted)}"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "total": len(self.wanted),
            "conforming": len(self.conforming),
            "unchecked": [str(codec) for codec in self.unchecked],
            "failures": [
                {"codec": str(result.codec), "oracle": result.oracle, "failure": result.failure}
                for result in self.failures
            ],
            "codecs": [
                {
                    "key": codec.key,
                    "name": codec.name,
                    "version": codec.version,
                    "samples": {result.oracle: result.samples for result in self.by_codec.get(codec, [])},
                    "conforms": self.conforms(codec),
                }
                for codec in self.wanted
            ],
        }


def ranges(versions: Iterable[int]) -> str:
    """Version numbers as ranges.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for version in sorted(versions):
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
