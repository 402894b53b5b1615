from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.broker.small_broker import SmallBroker


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of the broker; a test or module gives others by parametrizing it."""
    return {}


@pytest.fixture
def small(tmp_path: Path, settings: dict[str, str]) -> Iterator[SmallBroker]:
    """A broker of this test's own."""
    with SmallBroker(tmp_path, settings) as started:
        yield started
