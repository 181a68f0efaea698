"""Untrusted motion capture: every file is either read or one line, in bounded time."""

import re
import zipfile

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations
from numpy.typing import NDArray
from pose_datasets import asf_amc, bvh
from pose_datasets.mapping import asf_points, bvh_points

from pose.errors import PoseError

WORDS = ["0", "-1", "nan", "inf", "1e308", "1e9999", "root", "x", "{", "}", "begin", "end", ":root", "xyz", "", "99999"]


@pytest.fixture(scope="module")
def real(shared) -> dict[str, str]:
    """A skeleton, its motion and a BVH file of the CMU database, the motions cut short."""
    with zipfile.ZipFile(shared / "mocap" / "cmu" / "07.zip") as archive:
        names = archive.namelist()
        asf, amc = (archive.read(next(n for n in names if n.endswith(end))).decode() for end in (".asf", ".amc"))
    with zipfile.ZipFile(shared / "mocap" / "cmu" / "131.zip") as archive:
        figure = archive.read(next(n for n in archive.namelist() if n.endswith(".bvh"))).decode()
    head, rows = figure.split("Frame Time:")
    rows = rows.splitlines()
    head = re.sub(r"Frames: *\d+", "Frames: 3", head)
    return {
        "asf": asf,
        "amc": amc[:6000].rsplit("\n4\n")[0],
        "bvh": "\n".join([f"{head}Frame Time:{rows[0]}", *rows[1:4]]),
    }


def read_asf(files: dict[str, str]) -> NDArray[np.float64]:
    skeleton = asf_amc.parse_asf(files["asf"], "a.asf")
    return asf_points(skeleton, asf_amc.parse_amc(files["amc"], skeleton, "a.amc"), "a.amc")


def read_bvh(files: dict[str, str]) -> NDArray[np.float64]:
    return bvh_points(bvh.parse_bvh(files["bvh"], "a.bvh"), "a.bvh")


READERS = {"asf": read_asf, "amc": read_asf, "bvh": read_bvh}


def test_intact_motion_files_are_read(real):
    for read in READERS.values():
        points = read(real)
        assert len(points) >= 3
        assert np.isfinite(points).all()


@pytest.mark.parametrize("kind", READERS)
@quick_and_long(50, 4000)
def test_mutated_motion_files_are_read_or_rejected(real, kind, examples):
    try_mutations(lambda data: _mutate(real, kind, data), examples)


def _mutate(real, kind, data) -> None:
    lines = real[kind].splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "word", "swap", "double", "cut"])):
            case "drop":
                del lines[place]
            case "word":
                words = lines[place].split() or [""]
                words[data.draw(st.integers(0, len(words) - 1))] = data.draw(
                    st.sampled_from(WORDS) | st.text(max_size=5)
                )
                lines[place] = " ".join(words)
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[place], lines[other] = lines[other], lines[place]
            case "double":
                lines.insert(place, lines[place])
            case "cut":
                del lines[place + 1 :]
        if not lines:
            return
    with np.errstate(all="raise", under="ignore"):
        try:
            READERS[kind](real | {kind: "\n".join(lines)})
        except PoseError as error:
            said = str(error)
        else:
            said = ""
    assert "\n" not in said
    assert len(said) < 400


ASF = """
:units
  length {unit}
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  orientation 0 0 0
:bonedata
  begin
    name a
    direction {direction}
    length 1
    axis {axis}
    dof {dof}
  end
:hierarchy
  begin
    {hierarchy}
  end
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": "0"}, "unit of length above 0"),
        ({"unit": "nan"}, "is not a number up to"),
        ({"direction": "1 0"}, "three numbers"),
        ({"direction": "1 0 1e300"}, "is not a number up to"),
        ({"axis": "0 0"}, "three numbers"),
        ({"axis": "0 0 0 XXY"}, "a permutation of x, y and z"),
        ({"dof": "rx rx"}, "degrees of freedom"),
        ({"dof": "q"}, "degrees of freedom"),
        ({"hierarchy": "a root"}, "root is the child of another bone"),
        ({"hierarchy": "root a\n a root"}, "root is the child of another bone"),
        ({"hierarchy": "a a"}, "outside the hierarchy"),
    ],
)
def test_invalid_skeletons_give_a_one_line_error(change, said):
    usual = {"unit": "0.45", "direction": "1 0 0", "axis": "0 0 0 XYZ", "dof": "rx", "hierarchy": "root a"}
    asf_amc.parse_asf(ASF.format(**usual), "a.asf")
    with pytest.raises(PoseError, match=said):
        asf_amc.parse_asf(ASF.format(**usual | change), "a.asf")


ONE = "HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 3 Xrotation Yrotation Zrotation\n}"
BVH = ONE + "\nMOTION\nFrames: %s\nFrame Time: %s\n%s"


@pytest.mark.parametrize(
    ("frames", "seconds", "rows"),
    [("-1", "0.01", "1 2 3"), ("0", "0.01", ""), ("1", "nan", "1 2 3"), ("1", "-1", "1 2 3"), ("1", "0", "1 2 3"),
     ("1", "inf", "1 2 3"), ("2", "0.01", "1 2 3"), ("1", "0.01", "1 2"), ("1", "0.01", "1 2 nan"),
     ("1", "0.01", "1 2 1e300"), ("99999999999999999999", "0.01", "1 2 3")],
)  # fmt: skip
def test_invalid_motion_gives_a_one_line_error(frames, seconds, rows):
    assert bvh.parse_bvh(BVH % ("1", "0.01", "1 2 3"), "a.bvh").values.shape == (1, 3)
    with pytest.raises(PoseError, match=r"^a\.bvh"):
        bvh.parse_bvh(BVH % (frames, seconds, rows), "a.bvh")


@pytest.mark.parametrize(
    "tree", ["JOINT a\n{\n}", "", "{\n}", "ROOT a\n{\n}\nROOT b\n{\n}", "}", "ROOT a\n" + "JOINT a\n{\n" * 2000]
)
def test_invalid_bvh_hierarchies_give_a_one_line_error(tree):
    with pytest.raises(PoseError, match=r"^a\.bvh"):
        bvh.parse_bvh(f"HIERARCHY\n{tree}\nMOTION\nFrames: 1\nFrame Time: 0.01\n1\n", "a.bvh")
