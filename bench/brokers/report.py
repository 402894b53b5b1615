"""Tables, for the screen and for Markdown."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from .results import OURS, Report, Result, Spread

NOTHING = "-"
MARKS = {True: "met", False: "missed", None: ""}
BEGIN, END = "<!-- begin of the tables that `make bench` writes -->", "<!-- end of the tables -->"
Row = list[str]
UNNAMED = {"date", "processor", "system", "duration"}
"""What speaks for itself."""


def number(value: float | None, unit: str) -> str:
    """A value for people.

    >>> number(1234567.8, "records/s"), number(0.123456, "s"), number(None, "s")
    ('1,234,568', '0.123', '-')
    """
    if value is None:
        return NOTHING
    if unit == "us":
        return f"{value:,.0f} us" if value < 10_000 else f"{value / 1_000:,.1f} ms"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def spread(found: Spread | None) -> str:
    """A median, with the lowest and the highest.

    >>> spread(Spread(1.5, 1.25, 12.0))
    '1.50 (1.25-12.0)'
    """
    if found is None:
        return NOTHING
    return f"{_ratio(found.median)} ({_ratio(found.low)}-{_ratio(found.high)})"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def aim(result: Result, peer: str) -> str:
    """What was aimed at, and what came of it."""
    figure = result.figure
    parts = []
    if figure.aim is not None:
        sign = "≥" if figure.more_is_better else "≤"
        parts.append(f"{sign} {figure.aim:.3g} {MARKS[result.meets_aim(peer)]}".rstrip())
    if figure.limit_aim is not None and result.limits:
        parts.append(f"≥ {figure.limit_aim:.0%} of the limit {MARKS[result.meets_limit_aim()]}".rstrip())
    return ", ".join(parts)


def headings(report: Report) -> Row:
    """Of the table: contenders as they come, then what they are compared with."""
    ratio_to = [f"to {report.peer}"] if report.peer else []
    return ["line", *contenders(report), *ratio_to, "the limit", "of the limit", "aim"]


def rows(report: Report) -> list[Row]:
    """One for each figure of each line."""
    found = []
    last = ""
    for result in report.results:
        figure = result.figure
        what = f"{figure.name}, {figure.unit}" if figure.unit != "us" else figure.name
        title = f"{result.title}: {what}" if result.title != last else f"… {what}"
        last = result.title
        row = [title]
        row += [number(_median(result.values.get(name, ())), figure.unit) for name in contenders(report)]
        if report.peer:
            row.append(spread(result.ratio(report.peer)))
        limits = [number(_median(rounds), figure.unit) for rounds in result.limits.values() if _median(rounds)]
        row.append("; ".join(limits) or NOTHING)
        row.append(_of_limit(result))
        row.append(aim(result, report.peer or ""))
        found.append(row)
    return found


def contenders(report: Report) -> list[str]:
    """All who took part in any line, Ottla first."""
    names = dict.fromkeys(name for result in report.results for name in result.values)
    return sorted(names, key=lambda name: name != OURS)


def missed(report: Report) -> list[str]:
    """What misses its aim."""
    found = []
    for result in report.results:
        peer = report.peer or ""
        if result.meets_aim(peer) is False:
            found.append(f"{result.title}, {result.figure.name}: {spread(result.ratio(peer))} of {peer}'s")
        if result.meets_limit_aim() is False:
            found.append(f"{result.title}, {result.figure.name}: {spread(result.ratio_to_limit())} of the limit")
    return found


def show(report: Report, console: Console) -> None:
    """The table on the screen."""
    table = Table(*headings(report), title=_machine(report))
    for row in rows(report):
        mark = row[-1]
        style = "red" if "missed" in mark else "green" if "met" in mark else None
        table.add_row(*row[:-1], f"[{style}]{mark}[/]" if style else mark)
    console.print(table)
    for failure in report.failures:
        console.print(f"failed: {failure}", markup=False)


def markdown(report: Report) -> str:
    """The same table, what misses its aim, and what failed."""
    blocks = [_machine(report), _markdown_table(headings(report), rows(report))]
    for heading, items in (("Misses its aim", missed(report)), ("Failed", report.failures)):
        if items:
            blocks.append(f"**{heading}:**\n\n" + "\n".join(f"- {item}" for item in items))
    return "\n\n".join(blocks) + "\n"


def into_document(text: str, tables: str) -> str:
    """A document with its tables replaced; ValueError if it does not say where they are.

    >>> into_document(f"a\\n{BEGIN}\\nold\\n{END}\\nb\\n", "new\\n").split("\\n")[2:4]
    ['', 'new']
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no lines {BEGIN} and {END} for the tables to stand between")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def _markdown_table(heads: Row, body: Sequence[Row]) -> str:
    lines = [heads, ["---"] * len(heads), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _of_limit(result: Result) -> str:
    ratio = result.ratio_to_limit()
    if ratio is None:
        return NOTHING
    return f"{ratio.median:.0%}" if result.figure.more_is_better else f"{_ratio(ratio.median)} times"


def _machine(report: Report) -> str:
    what = ", ".join(value if name in UNNAMED else f"{name} {value}" for name, value in report.machine.items())
    return f"{what}; rounds: {report.rounds}" + (f"; scale: {report.scale}" if report.scale != 1 else "")


def _median(rounds: Sequence[float | None]) -> float | None:
    found = Spread.of(rounds)
    return found.median if found else None
