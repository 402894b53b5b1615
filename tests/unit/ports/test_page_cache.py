"""What is said of the page cache, compiled and in Python."""

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.native import load_compiled
from ottla.ports import page_cache

compiled = load_compiled("ottla.ports._native")
readers = [pytest.param(page_cache._read_cached, id="twin")]
counters = [pytest.param(page_cache._cached_pages, id="twin")]
if compiled is not None:
    readers.append(pytest.param(compiled.read_cached, id="compiled"))
    counters.append(pytest.param(compiled.cached_pages, id="compiled"))

CONTENT = bytes(range(256)) * 100


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_bytes(CONTENT)
    opened = os.open(tmp_path / "file", os.O_RDONLY)
    yield opened
    os.close(opened)


def read(reader: object, descriptor: int, position: int, length: int) -> object:
    """What a reader gives; the test ends here where the file system cannot tell what it has in memory."""
    try:
        return reader(descriptor, position, length)  # type: ignore[operator]
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            pytest.skip("this file system does not tell")
        raise


@pytest.mark.parametrize("reader", readers)
def test_what_was_just_written_is_read_from_memory(reader: object, descriptor: int) -> None:
    assert read(reader, descriptor, 300, 1000) == CONTENT[300:1300]
    assert read(reader, descriptor, 0, len(CONTENT)) == CONTENT


@pytest.mark.parametrize("reader", readers)
def test_less_than_was_asked_for_is_nothing(reader: object, descriptor: int) -> None:
    assert read(reader, descriptor, len(CONTENT) - 10, 11) is None


@pytest.mark.parametrize("reader", readers)
def test_a_file_that_is_not_open_is_an_error(reader: object, descriptor: int) -> None:
    read(reader, descriptor, 0, 1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        reader(1_000_000, 0, 1)  # type: ignore[operator]


@pytest.mark.parametrize("counter", counters)
def test_pages_are_counted_and_what_cannot_be_told_is_minus_one(counter: object, descriptor: int) -> None:
    pages = -(-len(CONTENT) // mmap.PAGESIZE)
    assert counter(descriptor, 0, len(CONTENT)) in (pages, -1)  # type: ignore[operator]
    assert counter(1_000_000, 0, 1) == -1  # type: ignore[operator]
