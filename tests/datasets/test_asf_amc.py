"""ASF/AMC: an oracle for the kinematics, round trips of the text, and errors that name the line."""

import re

import numpy as np
import pytest
from pose_datasets import asf_amc

from pose.errors import PoseError

ASF = """# a made-up skeleton
:version 1.10
:units
  mass 1.0
  length 0.45
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
  begin
     id 1
     name thigh
     direction 0.6 -0.8 0
     length 7
     axis 10 20 30 XYZ
    dof rx ry rz
    limits (-160.0 20.0)
           (-70.0 70.0)
           (-60.0 70.0)
  end
  begin
     id 2
     name shin
     direction 0 -1 0
     length 6.5
     axis -40 0 15 ZYX
    dof rz rx
  end
  begin
     id 3
     name back
     direction 0 1 0
     length 5
     axis 0 0 0 XYZ
  end
:hierarchy
  begin
    root thigh back
    thigh shin
  end
"""


def random_motion(rng, frames=5):
    return {
        "root": rng.normal(0, 30, (frames, 6)),
        "thigh": rng.normal(0, 50, (frames, 3)),
        "shin": rng.normal(0, 50, (frames, 2)),
    }


def write_amc(motion, newline="\n", first=1):
    lines = ["#!OML:ASF made up", ":FULLY-SPECIFIED", ":DEGREES"]
    for t in range(len(motion["root"])):
        lines.append(str(first + t))
        lines += [f"{bone} {' '.join(repr(float(v)) for v in values[t])}" for bone, values in motion.items()]
    return newline.join(lines) + newline


def turn(axis, degrees):
    a = np.radians(degrees)
    c, s = np.cos(a), np.sin(a)
    return {
        "x": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "y": np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "z": np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[axis]


def fixed_axes(order, angles):
    """Turn about the fixed axes of `order`, the first first."""
    matrix = np.eye(3)
    for axis in order.lower():
        matrix = turn(axis, angles[axis]) @ matrix
    return matrix


def slow_ends(motion, t):
    """The made-up skeleton by hand: 4x4 matrices, one frame, one bone at a time."""
    metres = 0.0254 / 0.45
    chain = {}

    def place(rotation, shift):
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = rotation, shift
        return matrix

    root = motion["root"][t]
    chain["root"] = place(fixed_axes("xyz", dict(zip("xyz", root[3:], strict=True))), root[:3] * metres)
    bones = {
        "thigh": ("root", (0.6, -0.8, 0), 7, ("xyz", (10, 20, 30)), "xyz"),
        "shin": ("thigh", (0, -1, 0), 6.5, ("zyx", (-40, 0, 15)), "zx"),
        "back": ("root", (0, 1, 0), 5, ("xyz", (0, 0, 0)), ""),
    }
    for name, (parent, direction, length, (order, axis), channels) in bones.items():
        own = fixed_axes(order, dict(zip("xyz", axis, strict=True)))
        values = dict(zip(channels, motion[name][t], strict=True)) if channels else {}
        moved = fixed_axes(order, {"x": 0, "y": 0, "z": 0} | values)
        rotation = place(own @ moved @ own.T, (0, 0, 0))
        chain[name] = chain[parent] @ rotation @ place(np.eye(3), np.array(direction) * length * metres)
    return {name: matrix[:3, 3] for name, matrix in chain.items()}


def test_asf_amc_kinematics_equal_a_slow_reference(rng):
    skeleton = asf_amc.parse_asf(ASF, "made-up.asf")
    motion = random_motion(rng)
    ends, turns = asf_amc.forward_kinematics(skeleton, motion)
    for t in range(len(ends)):
        expected = slow_ends(motion, t)
        for b, name in enumerate(skeleton.names):
            np.testing.assert_allclose(ends[t, b], expected[name], atol=1e-12)
    np.testing.assert_allclose(turns @ np.swapaxes(turns, -1, -2), np.broadcast_to(np.eye(3), turns.shape), atol=1e-12)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("frames", "first"), [(1, 1), (4, 1), (3, 17)])
def test_amc_round_trip(rng, newline, frames, first):
    skeleton = asf_amc.parse_asf(ASF, "made-up.asf")
    motion = random_motion(rng, frames)
    again = asf_amc.parse_amc(write_amc(motion, newline, first), skeleton, "made-up.amc")
    assert again.keys() == motion.keys()
    for bone, values in motion.items():
        np.testing.assert_array_equal(again[bone], values)


BROKEN_AMC = {
    "missing value": ("shin 3.0 4.0", "shin 3.0", "line 8: expected 'shin' and 2 numbers"),
    "not a number": ("shin 3.0 4.0", "shin 3.0 four", "line 8: expected 'shin' and 2 numbers"),
    "not finite": ("shin 3.0 4.0", "shin 3.0 nan", "line 8: expected 'shin' and 2 numbers"),
    "other bone": ("shin 3.0 4.0", "calf 3.0 4.0", "line 8: expected 'shin' and 2 numbers"),
    "cut off": ("\nshin 3.0 4.0\n", "\n", "the last frame is incomplete"),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN_AMC.values(), ids=BROKEN_AMC)
def test_invalid_amc_names_the_line(old, new, message):
    text = ":DEGREES\n1\nroot 0 0 0 0 0 0\nshin 1 2\n2\nroot 0 0 0 0 0 0\n\nshin 3.0 4.0\n"
    assert old in text
    with pytest.raises(PoseError, match=re.escape(f"broken.amc{', ' if 'line' in message else ': '}{message}")):
        asf_amc.parse_amc(text.replace(old, new), asf_amc.parse_asf(ASF, "s"), "broken.amc")


def test_amc_with_unknown_bones_is_rejected():
    skeleton = asf_amc.parse_asf(ASF, "made-up.asf")
    with pytest.raises(PoseError, match=r"a\.amc: no frame numbers"):
        asf_amc.parse_amc(":DEGREES\n", skeleton, "a.amc")
    with pytest.raises(PoseError, match=r"a\.amc: bone 'tail' is not in the skeleton"):
        asf_amc.parse_amc("1\nroot 0 0 0 0 0 0\ntail 1\n", skeleton, "a.amc")
    with pytest.raises(PoseError, match=r"a\.amc: bone 'shin' has 3 values, the skeleton defines 2"):
        asf_amc.parse_amc("1\nroot 0 0 0 0 0 0\nshin 1 2 3\n", skeleton, "a.amc")


BROKEN_ASF = {
    "bad number": ("length 7", "length seven", r"made-up\.asf, line 17: "),
    "unknown bone": ("thigh shin\n", "thigh shank\n", r"made-up\.asf, line \d+: unknown bone 'shank'"),
    "orphan": ("root thigh back", "root thigh", r"made-up\.asf: bones outside the hierarchy: back"),
    "no hierarchy": (":hierarchy", ":documentation", r"made-up\.asf: no :hierarchy section"),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN_ASF.values(), ids=BROKEN_ASF)
def test_invalid_asf_names_the_line(old, new, message):
    assert old in ASF
    with pytest.raises(PoseError, match=message):
        asf_amc.parse_asf(ASF.replace(old, new), "made-up.asf")
