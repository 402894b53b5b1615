"""docs/consumer-design.md and the tests that it names stay together."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "consumer-design.md"

REFERENCE = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
TESTS = re.compile(rf"(the same(, )?)?({REFERENCE.pattern}(, )?)*")
COLUMNS = ["rule", "`002`", "classic", "consumer", "tests"]


def rows() -> list[list[str]]:
    """The rows of all tables of rules, cell by cell."""
    found: list[list[str]] = []
    in_rules = False
    for text in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if not text.startswith("|"):
            in_rules = False
        elif cells == COLUMNS:
            in_rules = True
        elif in_rules and set(text) - set("|-"):
            found.append(cells)
    return found


@cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef) and "test_" in node.name)


def named() -> set[tuple[Path, str]]:
    """Every test that the page names, in a table or elsewhere."""
    found = set[tuple[Path, str]]()
    for place, name in REFERENCE.findall(PAGE.read_text()):
        found.add((ROOT / place if "/" in place else HERE / place, name))
    return found


def test_every_test_that_the_page_names_exists() -> None:
    lost = {
        f"{path.relative_to(ROOT)}::{name}" for path, name in named() if not path.exists() or name not in names_in(path)
    }
    assert not lost


def test_every_test_here_is_on_the_page() -> None:
    there = {(path, name) for path in HERE.glob("test_*.py") for name in names_in(path)} - {
        (Path(__file__), name) for name in names_in(Path(__file__))
    }
    assert len(there) > 90
    assert {name for _, name in there - named()} == set()


def test_every_rule_has_a_test_or_says_why_not() -> None:
    assert len(rows()) > 120
    before: list[tuple[str, str]] = []
    for cells in rows():
        assert len(cells) == len(COLUMNS), f"{cells[0]}: a row has {len(COLUMNS)} cells, not {len(cells)}"
        rule, shown = cells[0], cells[-1]
        if re.fullmatch("none: .+", shown):
            continue
        assert TESTS.fullmatch(shown), f"{rule}: {shown!r} names no tests"
        references = REFERENCE.findall(shown)
        if shown.startswith("the same"):
            assert before, f"{rule}: there is nothing above that could be the same"
            references += before
        assert references, f"{rule} has no test"
        before = references


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [cells[0] for cells in rows()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Z]{1,2}\d(\.\d)?", name) for name in names)


@pytest.mark.parametrize("phase", range(1, 6))
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_coordinator_is_killed_in_every_phase(protocol: str, phase: int) -> None:
    assert any(name.startswith(f"test_phase_{phase}_") for name in names_in(HERE / f"test_restart_{protocol}.py"))
