"""Files of anybody, mutated: a reader takes one or raises a PoseError of one line.

Whatever else a reader raises fails the test by itself, so a check need not look for it. The same examples come every
time: a few by default, thousands in the slow suite.
"""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def quick_and_long(quick: int, at_length: int) -> pytest.MarkDecorator:
    """Gives a test `examples`: so many by default, and so many in the slow suite."""
    lengths = [pytest.param(quick, id="quick"), pytest.param(at_length, id="at length", marks=pytest.mark.slow)]
    return pytest.mark.parametrize("examples", lengths)


def try_mutations(check: Callable[[st.DataObject], None], examples: int) -> None:
    """Call `check` with so many draws; the smallest that fails is shown."""

    @settings(max_examples=examples, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        check(data)

    run()
