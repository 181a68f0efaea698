from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pose.structures.extrema import refined_time, turning_points

SIGNALS = st.lists(st.floats(-10, 10), min_size=2, max_size=60).map(np.array)


@given(SIGNALS, st.floats(0.1, 5))
def test_turning_points_alternate_and_swing_enough(signal, swing):
    points = turning_points(signal, swing)
    for (first, kind), (second, other) in pairwise(points):
        assert first < second
        assert kind == -other
        assert abs(signal[first] - signal[second]) >= swing
    assert all(0 < index < len(signal) - 1 for index, _ in points)


@given(SIGNALS, st.floats(0.1, 5), st.floats(0.05, 1))
def test_extrema_at_the_ends_do_not_remove_inner_ones(signal, swing, share):
    inner = turning_points(signal, swing)
    every = turning_points(signal, swing, share * swing)
    assert [point for point in every if point in inner] == inner
    assert len(every) <= len(inner) + 2
    assert [kind for _, kind in every] == [(-1) ** i * every[0][1] for i in range(len(every))]


def test_parabola_vertex_is_interpolated_exactly():
    times = np.array([0.0, 0.1, 0.2, 0.3])
    signal = -((times - 0.13) ** 2)
    assert refined_time(signal, times, int(np.argmax(signal))) == pytest.approx(0.13)
