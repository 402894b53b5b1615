"""`make bench-codec`: the codec and the record formats beside kio, kafka-python and aiokafka, in one run, as ratios."""

import argparse
import json
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version as installed
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ottla.record.kernels import COMPILED

from .codec_messages import cases
from .codec_records import record_cases
from .timing import Line, compare, stay_on_one_core

PEERS = ("kio", "kafka-python", "aiokafka")


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.codec", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="rounds in which all take turns (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    stay_on_one_core()
    lines: list[Line] = []
    rates: list[tuple[Line, int]] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=23)
        for case in cases():
            for doing, contenders in (("decode", case.decoding), ("encode", case.encoding)):
                title = f"{case.title} {doing}"
                lines.append(compare(title, contenders, rounds=options.rounds, round_seconds=0.02))
                progress.advance(task)
        for record_case in record_cases():
            line = compare(record_case.title, record_case.contenders, rounds=options.rounds, round_seconds=0.05)
            rates.append((line, record_case.records))
            progress.advance(task)
        import_ms = import_milliseconds()
        progress.advance(task)
    if options.json:
        print(json.dumps(as_json(lines, rates, import_ms)))
    else:
        show(lines, rates, import_ms)
    return 0


def import_milliseconds() -> float:
    """What `import ottla` adds to a bare interpreter, and the imports of the whole codec."""
    code = "import time; t = time.perf_counter(); import ottla; print(time.perf_counter() - t)"
    found = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(9)
    ]
    return statistics.median(found) * 1000


def show(lines: list[Line], rates: list[tuple[Line, int]], import_ms: float) -> None:
    """Print tables: times as multiples of Ottla's."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    engine = "compiled" if COMPILED else "pure Python"
    versions = ", ".join(f"{name} {installed(name)}" for name in PEERS)
    console.print(
        f"Python {platform.python_version()}, one core, {engine} codec; {versions}.\n"
        "A peer's column says how many times as long it takes, the median over the rounds with the middle half of\n"
        "them behind it; above 1 Ottla is faster.",
        highlight=False,
    )
    table = Table("message", "Ottla", *PEERS, title="Messages", title_justify="left")
    for line in lines:
        cells = [ratio_cell(line, peer) for peer in PEERS]
        table.add_row(line.title, f"{line.seconds['ottla'] * 1e6:.1f} us", *cells)
    console.print(table)
    table = Table("records of 100 bytes", "Ottla", *PEERS[1:], title="Records", title_justify="left")
    for line, count in rates:
        cells = [ratio_cell(line, peer) for peer in PEERS[1:]]
        table.add_row(line.title, f"{count / line.seconds['ottla'] / 1e6:.1f} M/s", *cells)
    console.print(table)
    console.print(f"import ottla: {import_ms:.2f} ms", highlight=False)


def ratio_cell(line: Line, peer: str) -> str:
    """A peer's ratio, or a dash where it has nothing to compare."""
    ratio = line.ratios.get(peer)
    return "-" if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"


def as_json(lines: list[Line], rates: list[tuple[Line, int]], import_ms: float) -> dict[str, Any]:
    """The same for programs."""

    def row(line: Line) -> dict[str, Any]:
        ratios = {name: ratio._asdict() for name, ratio in line.ratios.items()}
        return {"line": line.title, "seconds": line.seconds, "ratios": ratios}

    return {
        "messages": [row(line) for line in lines],
        "records": [{**row(line), "records_per_second": count / line.seconds["ottla"]} for line, count in rates],
        "import_ms": import_ms,
    }


if __name__ == "__main__":
    sys.exit(main())
