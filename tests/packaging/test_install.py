"""What a user gets from `pip install`, with a compiler and without one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from sysconfig import get_config_var

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from ottla.wire.compile import encode
    from ottla.wire.api.metadata import MetadataRequest
    from ottla.record import Record, build_batch
    from ottla.record.batch import Batch, records
    from ottla.record.kernels import COMPILED
    import ottla.record.batch
assert encode(MetadataRequest(topics=[]), 0) == bytes(4)
assert records(Batch(build_batch([Record(0, 1, None, b"v")]))) == [Record(0, 1, None, b"v")]
assert COMPILED is not ottla.record.batch.__file__.endswith(".py"), ottla.record.batch.__file__
print(COMPILED, [str(warning.message) for warning in caught])
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, as it stands. What Cython makes of it is used again."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
    return copy


def install(source: Path, target: Path, compiler: str) -> None:
    """Install it into a folder."""
    for built in ("lib*", "temp*", "bdist*"):
        for folder in source.glob(f"build/{built}"):
            shutil.rmtree(folder)
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "CC": compiler, "CXX": compiler}
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(target / "site"), str(source)], env=environment, check=True)


def run_installed(target: Path, **environment: str) -> str:
    """Run the program against what was installed, and not against this checkout."""
    # The editable install of the checkout comes behind PYTHONPATH.
    settings = {**os.environ, "PYTHONPATH": str(target / "site"), **environment}
    settings.pop("OTTLA_PURE_PYTHON", None) if not environment else None
    check = f"import ottla, sys; assert ottla.__file__.startswith({str(target)!r}), ottla.__file__\n"
    done = subprocess.run(
        [sys.executable, "-c", check + PROGRAM], env=settings, cwd=target, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_without_a_compiler_the_install_works_on_the_twins_and_says_so_once(source: Path, tmp_path: Path) -> None:
    install(source, tmp_path, compiler="/bin/false")
    said = run_installed(tmp_path)
    assert said.startswith("False ['Ottla's compiled modules are not installed".replace("['O", '["O'))
    assert said.count("not installed") == 1


@pytest.mark.slow
def test_with_a_compiler_the_install_is_compiled_and_silent_and_the_twins_can_be_asked_for(
    source: Path, tmp_path: Path
) -> None:
    # Most of the time would go into making the modules fast, which is done for all other tests already.
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    compiler.chmod(0o755)
    install(source, tmp_path, compiler=str(compiler))
    assert run_installed(tmp_path) == "True []"
    assert run_installed(tmp_path, OTTLA_PURE_PYTHON="1") == "False []"


def test_importing_ottla_takes_less_than_a_tenth_of_a_second() -> None:
    code = "import time; t = time.process_time(); import ottla; print(time.process_time() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(times) < 0.1


@pytest.mark.slow
def test_nothing_compiled_stays_that_is_not_of_these_sources(source: Path, tmp_path: Path) -> None:
    suffix = get_config_var("EXT_SUFFIX")
    left = [source / "src" / f"ottla__mypyc{suffix}", source / "src/ottla/log" / f"log{suffix}"]
    for path in left:
        path.write_bytes(b"what an earlier build has left")
    kept = source / "src/ottla/record" / f"_kept{suffix}"
    kept.write_bytes(b"")
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    environment = {**os.environ, "CC": "/bin/false", "CXX": "/bin/false"}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=True)
    assert not any(path.exists() for path in left)
    assert kept.exists(), "kernels stay: each has a twin, and is asked for by its own name"
    assert "handled by Python as it is" in done.stdout
    kept.unlink()
