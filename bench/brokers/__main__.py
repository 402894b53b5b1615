"""`python -m bench.brokers`: Ottla beside Apache Kafka and other brokers, on this machine, in one run.

Contenders take turns, round after round, on the same disk and with the same clients and settings; while one works the
others stand still. What counts is the ratio to Kafka 4 within a round. Lines, aims and how to read them: docs/bench.md.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.network import leave_pacing

from .catalog import LINES, QUICK, chosen
from .line import Line
from .peers import Kafka4, Ottla, at_hand
from .picture import svg
from .regress import Change, verdicts
from .report import into_document, markdown, missed, show, spread
from .results import Report
from .run import compare
from .server import Server

RECORDED = Path(__file__).parent / "quick.json"
"""The last recorded quick run, which later ones are compared with."""
QUICK_SCALE, QUICK_ROUNDS = 0.15, 3
FULL_ROUNDS = 5
GOT_WORSE = 3


def main() -> int:
    """Measure, print and write; 3 if a quick run finds that something got worse."""
    # Brokers are ended and folders removed then, as after an interrupt.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    options = _parser().parse_args()
    if options.list:
        for line in LINES:
            print(f"{line.name:40} {line.title}")
        return 0
    console = Console(width=None if sys.stdout.isatty() else 240)
    if options.show:
        report = Report.load(options.show)
        show(report, console)
        _write(report, options)
        return 0
    try:
        lines = chosen(options.only or (QUICK if options.quick else [line.name for line in LINES]))
        kinds = _contenders(options.peers, options.quick)
        if options.markdown and options.markdown.exists():
            # Better now than after an hour.
            into_document(options.markdown.read_text(), "")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    report = _measure(lines, kinds, options)
    show(report, console)
    _write(report, options)
    if not options.quick:
        print(f"aims missed: {len(missed(report))}")
        return 0
    if options.record:
        RECORDED.write_text(report.to_json())
        return 0
    return _compare_with_recorded(report, console)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.brokers", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show what the lines are called, and do nothing")
    parser.add_argument("--only", nargs="+", metavar="LINE", help="these lines alone, by name, beginning or pattern")
    parser.add_argument(
        "--peers", nargs="+", metavar="NAME", help="these peers alone: kafka4, kafka3, mock, kfake, nisshi"
    )
    parser.add_argument("--rounds", type=int, help=f"how often everybody takes a turn ({FULL_ROUNDS})")
    parser.add_argument("--scale", type=float, help="by how much less there is to do, such as 0.1")
    parser.add_argument("--quick", action="store_true", help="a minute: few lines, Kafka 4 alone, and what got worse")
    parser.add_argument("--record", action="store_true", help="with --quick: what later quick runs are compared with")
    parser.add_argument("--paced", action="store_true", help="stay on the machine's loopback even if that is paced")
    parser.add_argument("--folder", type=Path, help="where data goes meanwhile; 20 GB for all lines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values of all rounds, after each line")
    parser.add_argument("--update", action="store_true", help="keep the lines of that FILE that are not measured now")
    parser.add_argument("--show", type=Path, metavar="FILE", help="measure nothing; tables and picture of such a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write tables, between the marks if it has them")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write an SVG of the ratios")
    return parser


def _contenders(names: Sequence[str] | None, quick: bool) -> list[type[Server]]:
    available = {kind.__name__.lower(): kind for kind in at_hand()}
    if names is None:
        return [kind for kind in available.values() if not quick or kind in (Ottla, Kafka4)]
    unknown = [name for name in names if name.lower() not in available]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} cannot take part here; those who can: {', '.join(available)}")
    wanted = {Ottla.__name__.lower(), *(name.lower() for name in names)}
    return [kind for name, kind in available.items() if name in wanted]


def _measure(lines: Sequence[Line], kinds: Sequence[type[Server]], options: argparse.Namespace) -> Report:
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else FULL_ROUNDS)
    scale = options.scale or (QUICK_SCALE if options.quick else 1.0)
    network = partial(leave_pacing, wanted=not options.paced)
    earlier = Report.load(options.json) if options.update and options.json and options.json.exists() else None

    def with_earlier(found: Report) -> Report:
        return found if earlier is None else found.with_rest_of(earlier, [line.name for line in LINES])

    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-", dir=options.folder) as folder,
        # Drawn when there is something new, and not in between, where it would take time from those who work.
        Progress(console=Console(stderr=True), auto_refresh=False) as progress,
    ):
        bar = progress.add_task("", total=len(lines))

        def tell(text: str) -> None:
            progress.update(bar, description=text, refresh=True)

        def save(found: Report) -> None:
            progress.update(bar, advance=1, refresh=True)
            if not progress.console.is_terminal:
                progress.console.print(f"measured: {found.results[-1].title}", markup=False)
            if options.json:
                options.json.write_text(with_earlier(found).to_json())

        return with_earlier(compare(lines, kinds, Path(folder), rounds, scale, tell, save, network))


def _write(report: Report, options: argparse.Namespace) -> None:
    if options.picture:
        options.picture.write_text(svg(report))
    if options.markdown:
        picture = f"![Ratios to {report.peer}]({options.picture.name})\n\n" if options.picture else ""
        tables = picture + markdown(report)
        if options.markdown.exists():
            tables = into_document(options.markdown.read_text(), tables)
        options.markdown.write_text(tables)


def _compare_with_recorded(report: Report, console: Console) -> int:
    if not RECORDED.exists():
        print("nothing is recorded to compare with: --quick --record does that")
        return 0
    recorded = Report.load(RECORDED)
    if recorded.machine.get("network") != report.machine.get("network"):
        print(f"that was recorded through {recorded.machine.get('network', 'a network not noted')}, and this was not")
    found = verdicts(recorded, report)
    table = Table("since the last recorded run", f"to {report.peer}", "to the limit")
    for verdict in found:
        style = "red" if verdict.is_worse else None
        table.add_row(verdict.title, _told(verdict.to_peer), _told(verdict.to_limit), style=style)
    console.print(table)
    worse = [verdict.title for verdict in found if verdict.is_worse]
    print(f"got worse: {'; '.join(worse)}" if worse else "nothing got worse")
    return GOT_WORSE if worse else 0


def _told(change: Change | None) -> str:
    if change is None:
        return "-"
    return f"{change.factor - 1:+.0%}: {spread(change.now)}, was {spread(change.before)}"


if __name__ == "__main__":
    sys.exit(main())
