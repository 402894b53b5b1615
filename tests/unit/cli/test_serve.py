"""`ottla serve` where it cannot start."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.cli.main import app


def test_a_data_folder_that_is_a_file_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    refused = CliRunner().invoke(app, ["serve", "--listen", "localhost:0", "--data", str(file)])
    assert (refused.exit_code, refused.stderr) == (
        1,
        f"error: the data folder {file} is a file; name another one with --data\n",
    )
    refused = CliRunner().invoke(app, ["serve", "--listen", "localhost:0", "--data", str(file / "below")])
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: the data folder {file / 'below'} cannot be created (")
    assert "Errno" not in refused.stderr


def test_a_setting_that_does_not_exist_is_refused_like_other_failures() -> None:
    refused = CliRunner().invoke(app, ["serve", "--set", "no.such.setting=1"])
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: INVALID_CONFIG: ")


def test_a_data_folder_that_cannot_be_written_to_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever may do everything, as tests often may, is never told so by the system.
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    refused = CliRunner().invoke(app, ["serve", "--listen", "localhost:0", "--data", str(tmp_path)])
    assert (refused.exit_code, refused.stderr) == (
        1,
        f"error: the data folder {tmp_path} cannot be written to by this user; name another one with --data\n",
    )
