import json
import subprocess
import sys


def test_the_demo_explains_each_format_and_gets_every_record_back() -> None:
    command = [sys.executable, "-m", "ottla", "demo", "--json", "--records", "3000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    *fields, last = lines
    assert len({line["format"] for line in fields}) == 3
    assert all(line["read_back_the_same"] for line in fields)
    magics = [line["value"] for line in fields if line["path"].endswith(".magic")]
    assert magics == [0, 1, 2]
    for one in {line["format"] for line in fields}:
        shown = [line for line in fields if line["format"] == one and line["start"] != line["end"]]
        assert [line["start"] for line in shown[1:]] == [line["end"] for line in shown[:-1]], "no byte unexplained"
    assert last["broker"]["records"] == 3000
    assert last["broker"]["in_order"]


def test_the_demo_prints_tables_for_people() -> None:
    command = [sys.executable, "-m", "ottla", "demo", "--records", "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "Record batch, magic 2" in done.stdout
    assert "A DIFFERENT RECORD" not in done.stdout
    assert "all back, in order" in done.stdout
