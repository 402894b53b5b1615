"""The Python of docs/spark.md works as pasted and prints what its comments say, and its pipelines are the examples."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.spark.options import OTHER_NAMES, SOURCE_NAMES
from ottla.spark.pipeline.load import parse
from ottla.testing import TestBroker

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "spark.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
PIPELINES = re.findall(r"\((\.\./examples/pipelines/\w+\.toml)\).*?```toml\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_guide_runs_and_prints_what_it_says(
    program: str, spark: SparkSession, broker: TestBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "localhost:9092" in program
    script = tmp_path / "program.py"
    text = program.replace("localhost:9092", broker.bootstrap_servers).replace("/tmp/ottla-guide", str(tmp_path))
    script.write_text(text)
    capsys.readouterr()
    # In this process, where `getOrCreate()` gives the Spark that runs already.
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", program)


@pytest.mark.parametrize(("path", "text"), PIPELINES, ids=[Path(path).stem for path, _ in PIPELINES])
def test_a_pipeline_of_the_guide_is_the_example_without_its_comments(path: str, text: str) -> None:
    table = tomllib.loads(text)
    assert table == tomllib.loads((ROOT / "docs" / path).read_text())
    parse(table, ROOT, "guide")


def test_all_pipelines_of_the_examples_are_in_the_guide() -> None:
    assert sorted(Path(path).name for path, _ in PIPELINES) == sorted(
        file.name for file in (ROOT / "examples" / "pipelines").glob("*.toml")
    )


def test_all_options_are_in_the_tables() -> None:
    listed = set(re.findall(r"^\| `([\w.]+)` \|", GUIDE, re.MULTILINE))
    assert {*SOURCE_NAMES, *OTHER_NAMES} - {"path"} <= listed
