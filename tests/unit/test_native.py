"""Modules that are compiled as they stand, and the same modules as Python."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ottla
from ottla.native import PURE_PYTHON
from ottla.record.kernels import COMPILED

SOURCES = Path(ottla.__file__).parents[1]
LINES = (SOURCES / "ottla/compiled.txt").read_text().splitlines()
MODULES = [line for line in LINES if line and not line.startswith("#")]
NAMES = [line.removesuffix(".py").replace("/", ".") for line in MODULES]


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("name", NAMES)
def test_where_there_is_a_compiler_the_way_of_a_request_is_compiled(name: str) -> None:
    found = str(import_module(name).__file__)
    assert not found.endswith(".py"), f"{found}; `python setup.py build_ext --inplace` says why"


def run_as_python(*arguments: str) -> str:
    environment = {**os.environ, "OTTLA_PURE_PYTHON": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, cwd=SOURCES.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_all_of_it_runs_as_python_if_that_is_asked_for() -> None:
    program = f"import importlib; print(*(importlib.import_module(name).__file__ for name in {NAMES}))"
    assert run_as_python("-c", program).split() == [str(SOURCES / line) for line in MODULES]


@pytest.mark.skipif(PURE_PYTHON, reason="they run with all the others then")
def test_examples_of_compiled_modules_run_as_python() -> None:
    """mypyc leaves docstrings out."""
    paths = [str(SOURCES / line) for line in MODULES]
    said = run_as_python("-m", "pytest", "-q", "-p", "no:cacheprovider", *paths)
    assert " passed" in said
