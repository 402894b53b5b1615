import io
import xml.etree.ElementTree as ElementTree

import pytest
from bench.brokers.picture import bars, svg
from bench.brokers.report import BEGIN, END, into_document, markdown, missed, show
from rich.console import Console

from .figures import LATENCY, RATE, report, result


def test_the_table_says_what_was_aimed_at_and_what_came_of_it() -> None:
    text = markdown(report(result(RATE, [150.0], [100.0], limit=[300.0]), result(LATENCY, [40.0], [100.0])))
    rate, latency = (line for line in text.splitlines() if line.startswith("| title") or line.startswith("| …"))
    assert "1.50 (1.50-1.50)" in rate
    assert "≥ 1.2 met" in rate
    assert "50%" in rate
    assert "≥ 60% of the limit missed" in rate
    assert "0.40 (0.40-0.40)" in latency
    assert "≤ 0.2 missed" in latency


def test_what_misses_its_aim_is_listed() -> None:
    found = missed(report(result(RATE, [150.0], [100.0], limit=[300.0]), result(LATENCY, [10.0], [100.0])))
    assert found == ["title of produce/100, rate: 0.50 (0.50-0.50) of the limit"]


def test_the_screen_shows_every_line_and_every_contender() -> None:
    output = io.StringIO()
    show(report(result(RATE, [150.0], [100.0])), Console(file=output, width=200))
    for word in ("title of produce/100", "Ottla", "Kafka", "150", "100", "1.50"):
        assert word in output.getvalue()


def test_tables_go_between_the_marks_of_a_document_and_nowhere_else() -> None:
    once = into_document(f"before\n{BEGIN}\nold\n{END}\nafter\n", "new\n")
    assert into_document(once, "new\n") == once
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter\n")
    with pytest.raises(ValueError, match="no lines"):
        into_document("a document without marks", "new")


def test_in_the_picture_right_is_better_whatever_is_measured() -> None:
    rate, latency = bars(report(result(RATE, [300.0], [100.0]), result(LATENCY, [25.0], [100.0])))
    assert (rate.middle, rate.met) == (3.0, True)
    assert (latency.middle, latency.aim, latency.met) == (4.0, 5.0, False)


def test_the_picture_is_sound_xml_with_a_bar_for_each_figure() -> None:
    tree = ElementTree.fromstring(svg(report(result(RATE, [300.0], [100.0]), result(LATENCY, [2.0], [300.0]))))
    boxes = tree.findall("{http://www.w3.org/2000/svg}rect")
    # One is the background.
    assert len(boxes) == 3
    assert all(float(box.attrib["width"]) > 0 for box in boxes)
