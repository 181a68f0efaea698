"""BVH: an oracle for the kinematics with channels in any order, round trips of the text, and errors."""

import itertools

import numpy as np
import pytest
from pose_datasets import bvh

from pose.errors import PoseError


def write_bvh(motion):
    """BVH text of a BvhMotion, written recursively."""

    def joint(index, depth):
        pad = "  " * depth
        name = motion.names[index]
        children = [i for i, parent in enumerate(motion.parents) if parent == index]
        end = name.endswith("_end")
        lines = [f"{pad}{'End Site' if end else ('ROOT ' if depth == 0 else 'JOINT ') + name}", f"{pad}{{"]
        lines.append(f"{pad}  OFFSET {' '.join(repr(float(v)) for v in motion.offsets[index])}")
        if not end:
            channels = motion.channels[index]
            lines.append(f"{pad}  CHANNELS {len(channels)} {' '.join(channels)}")
        for child in children:
            lines += joint(child, depth + 1)
        return [*lines, f"{pad}}}"]

    rows = [" ".join(repr(float(v)) for v in row) for row in motion.values]
    head = ["MOTION", f"Frames: {len(rows)}", f"Frame Time: {1 / motion.fps!r}"]
    return "\n".join(["HIERARCHY", *joint(0, 0), *head, *rows]) + "\n"


@pytest.fixture
def figure(rng):
    orders = ["".join(order) for order in itertools.permutations("XYZ")]
    channels = [("Zposition", "Xposition", "Yposition", "Yrotation", "Xrotation", "Zrotation")]
    channels += [tuple(f"{axis}rotation" for axis in order) for order in orders] + [()]
    names = ("Hips", *(f"Joint{order}" for order in orders), "JointZYX_end")
    parents = (-1, 0, 1, 0, 3, 4, 3, 6)
    values = rng.normal(0, 60, (4, sum(map(len, channels))))
    return bvh.BvhMotion(names, parents, rng.normal(0, 10, (8, 3)), tuple(channels), values, 120.0)


def slow_position(figure, t, index):
    """World place of a joint, by walking down from the root with 4x4 matrices."""
    path = [index]
    while figure.parents[path[0]] >= 0:
        path.insert(0, figure.parents[path[0]])
    matrix = np.eye(4)
    for joint in path:
        start = sum(map(len, figure.channels[:joint]))
        values = dict(
            zip(figure.channels[joint], figure.values[t, start : start + len(figure.channels[joint])], strict=True)
        )
        shift = np.eye(4)
        shift[:3, 3] = [values.get(f"{axis}position", figure.offsets[joint][i]) for i, axis in enumerate("XYZ")]
        matrix = matrix @ shift
        for channel, value in values.items():
            if channel.endswith("rotation"):
                i = "XYZ".index(channel[0])
                j, k = (i + 1) % 3, (i + 2) % 3
                c, s = np.cos(np.radians(value)), np.sin(np.radians(value))
                spin = np.eye(4)
                spin[j, j], spin[j, k], spin[k, j], spin[k, k] = c, -s, s, c
                matrix = matrix @ spin
    return matrix[:3, 3]


def test_bvh_kinematics_equal_a_slow_reference(figure):
    positions, _ = bvh.forward_kinematics(figure)
    for t, joint in itertools.product(range(4), range(8)):
        np.testing.assert_allclose(positions[t, joint], slow_position(figure, t, joint), atol=1e-10)


def test_bvh_round_trips(figure):
    again = bvh.parse_bvh(write_bvh(figure), "made-up.bvh")
    # Joints come back in the order of the text, depth first.
    order = [again.names.index(name) for name in figure.names]
    assert [again.names[again.parents[i]] if again.parents[i] >= 0 else None for i in order] == [
        figure.names[parent] if parent >= 0 else None for parent in figure.parents
    ]
    np.testing.assert_array_equal(again.offsets[order], figure.offsets)
    assert again.fps == pytest.approx(120)
    assert again.values.shape == figure.values.shape


BROKEN = {
    "no motion": ("MOTION", "NOTION", r"no MOTION section"),
    "odd channel": (
        "CHANNELS 3 Xrotation Yrotation",
        "CHANNELS 3 Xrotation Wrotation",
        r"line \d+: expected 3 channels",
    ),
    "wrong count": ("CHANNELS 3 Xrotation", "CHANNELS 2 Xrotation", r"line \d+: expected 2 channels"),
    "bad offset": ("OFFSET", "OFFSET x", r"line 4: could not convert"),
    "unknown word": ("JOINT JointXYZ", "JOIN JointXYZ", r"line \d+: not understood"),
    "bad frames": ("Frames: 4", "Frames: four", r"line \d+: expected 'Frames: N'"),
    "too few frames": ("Frames: 4", "Frames: 5", r"5 frames announced, 4 found"),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN)
def test_invalid_bvh_names_the_line(figure, old, new, message):
    text = write_bvh(figure)
    assert old in text
    with pytest.raises(PoseError, match=r"made-up\.bvh.*" + message):
        bvh.parse_bvh(text.replace(old, new, 1), "made-up.bvh")
