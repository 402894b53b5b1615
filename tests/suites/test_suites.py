import warnings

import pytest

from .run import run
from .suite import SUITES, Suite


class SuiteSkipped(UserWarning):
    """Somebody else's suite proves nothing in this run."""


@pytest.mark.slow
@pytest.mark.filterwarnings("default::tests.suites.test_suites.SuiteSkipped")
@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.client)
def test_what_passed_once_in_another_clients_own_suite_still_passes(suite: Suite) -> None:
    checkout = suite.checkout()
    if checkout is None:
        reason = f"NOT RUN: {suite.client}'s own suite; {suite.variable} names no checkout of it"
        # A warning stands in the summary of a quiet run too, where a skip is one letter.
        warnings.warn(reason, SuiteSkipped, stacklevel=1)
        pytest.skip(reason)
    verdict = run(suite, checkout.resolve())
    assert not verdict.regressions, verdict.regressions
