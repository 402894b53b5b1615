"""The comparison as a picture: one bar a figure, longer to the right the better Ottla is, on a scale of factors."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from .results import Report, Result

ROW, TEXT, WIDTH, MARGIN = 22, 530, 1080, 40
PLOT = WIDTH - TEXT - 120
GOOD, BAD, PLAIN, INK, GRID = "#2e7d32", "#c62828", "#5c6bc0", "#222222", "#cccccc"


class Bar(NamedTuple):
    """How many times better Ottla is, with the worst and the best round, and how many times it should be."""

    label: str
    middle: float
    low: float
    high: float
    aim: float | None
    met: bool | None


def bars(report: Report) -> list[Bar]:
    """One for each figure that has a ratio; where less is better, turned round."""
    return [bar for result in report.results if (bar := _bar(result, report.peer or "")) is not None]


def _bar(result: Result, peer: str) -> Bar | None:
    ratio = result.ratio(peer)
    if ratio is None:
        return None
    figure, label = result.figure, f"{result.title}: {result.figure.name}"
    met = result.meets_aim(peer)
    if figure.more_is_better:
        return Bar(label, ratio.median, ratio.low, ratio.high, figure.aim, met)
    aim = None if figure.aim is None else 1 / figure.aim
    return Bar(label, 1 / ratio.median, 1 / ratio.high, 1 / ratio.low, aim, met)


def svg(report: Report) -> str:
    """The picture, as text."""
    found = bars(report)
    values = [value for bar in found for value in (bar.low, bar.high, bar.aim or 1.0)] or [1.0]
    least, most = _decade(min(values), math.floor), _decade(max(values), math.ceil)
    height = MARGIN * 2 + ROW * len(found)

    def x(value: float) -> float:
        return TEXT + PLOT * (math.log10(value) - math.log10(least)) / (math.log10(most) - math.log10(least))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN // 2}" y="22" font-size="15">How many times better than {escape(report.peer or "")}: '
        "to the right of 1 Ottla is ahead; the thin line is the spread, the tick the aim</text>",
    ]
    for mark in _marks(least, most):
        colour = INK if mark == 1 else GRID
        parts.append(
            f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{MARGIN}" y2="{height - MARGIN}" stroke="{colour}"/>'
        )
        parts.append(f'<text x="{x(mark):.1f}" y="{height - MARGIN + 16}" text-anchor="middle">{mark:g}</text>')
    for index, bar in enumerate(found):
        parts += _drawn(
            bar, MARGIN + ROW * index, x(1.0), [x(each) for each in (bar.middle, bar.low, bar.high, bar.aim or 1.0)]
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(bar: Bar, top: float, one: float, places: Sequence[float]) -> list[str]:
    middle, low, high, aim = places
    colour = {True: GOOD, False: BAD, None: PLAIN}[bar.met]
    centre = top + ROW / 2
    parts = [
        f'<text x="{TEXT - 8}" y="{centre + 4:.0f}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect x="{min(one, middle):.1f}" y="{top + 4:.0f}" width="{abs(middle - one):.1f}" height="{ROW - 8}" '
        f'fill="{colour}"/>',
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{centre:.0f}" y2="{centre:.0f}" stroke="{INK}"/>',
        f'<text x="{max(middle, high, aim, one) + 6:.1f}" y="{centre + 4:.0f}">{bar.middle:.2f}</text>',
    ]
    if bar.aim is not None:
        parts.append(
            f'<line x1="{aim:.1f}" x2="{aim:.1f}" y1="{top + 1:.0f}" y2="{top + ROW - 1:.0f}" stroke="{INK}" '
            'stroke-width="2"/>'
        )
    return parts


def _decade(value: float, to_whole: Callable[[float], int]) -> float:
    """The power of ten beside a value; 1 stays inside, and the scale is never empty."""
    power = to_whole(math.log10(value))
    return float(10 ** (min(power, -1) if to_whole is math.floor else max(power, 1)))


def _marks(least: float, most: float) -> list[float]:
    powers = range(round(math.log10(least)), round(math.log10(most)) + 1)
    return [10.0**power for power in powers]
