"""What a joint set must be told of beyond its names and edges: a joint of an unknown kind is named here."""

import pytest

from pose.lifting.repair.swaps import LIMBS
from pose.results.keypoints_json import LAYOUTS
from pose.structures.skeletons import SKELETONS, Skeleton
from pose.tracking.identities import SIGMAS
from pose.view.overlay import thickness

# Not in JSON of other programs: they come from our estimators and from the files of data sets.
NOT_IN_JSON = {"h36m17", "blazepose33"}


def unknown_joints(skeleton: Skeleton) -> dict[str, list[str]]:
    """The table that misses something, and the joints that it does not know.

    Joints of face and hands, which are drawn thinner, have one tolerance (`pose.tracking.identities.HAND_OR_FACE`), and
    those of a face are never swapped with their limb.
    """
    missing: dict[str, list[str]] = {}
    stems = {stem for limb in LIMBS.values() for stem in limb}
    drawn = {joint for edge in skeleton.edges for joint in edge}
    for joint, name in enumerate(skeleton.names):
        if thickness(name) < 1:
            continue
        if joint not in drawn:
            missing.setdefault("edges", []).append(name)
        if not set(name.split("_")) & set(SIGMAS):
            missing.setdefault("pose.tracking.identities.SIGMAS", []).append(name)
        if skeleton.side(joint) != "centre" and name.split("_", 1)[1] not in stems:
            missing.setdefault("pose.lifting.repair.swaps.LIMBS", []).append(name)
    return missing


@pytest.mark.parametrize("skeleton", SKELETONS.values(), ids=SKELETONS)
def test_joint_tables_cover_every_joint(skeleton):
    assert unknown_joints(skeleton) == {}


def test_keypoint_reader_knows_every_joint_set():
    assert {name for name, _ in LAYOUTS.values()} | NOT_IN_JSON == set(SKELETONS)


def test_unknown_joint_is_named():
    odd = Skeleton("odd", ("left_hip", "right_hip", "left_wing", "right_wing"), ((0, 1), (0, 2)), derived=True)
    assert unknown_joints(odd) == {
        "pose.tracking.identities.SIGMAS": ["left_wing", "right_wing"],
        "pose.lifting.repair.swaps.LIMBS": ["left_wing", "right_wing"],
        "edges": ["right_wing"],
    }
