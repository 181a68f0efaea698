"""Optimised functions against their plain definitions: bit-identical results."""

import cv2
import numpy as np
import pytest
from pose_fakes import STANDING

from pose.networks import crops
from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.structures.types import Keypoints2D, Regions
from pose.tracking.masking import BLUR_CELL_PX, HEAD_RADIUS, LIMB_WIDTH, MAX_CROP_PX, SAMPLES_PER_CELL, PersonMasker
from pose.tracking.observations import (
    MAX_DUPLICATE_DISTANCE,
    MAX_MASKED_DUPLICATE_DISTANCE,
    Observations,
    PersonTrack,
    duplicates,
)
from pose.tracking.person_state import ACROSS_FRACTIONS, DOWN_FRACTIONS, THIGH_FRACTIONS, PersonModel


def persons(rng, count, spread=300.0):
    """(P, 17, 2) px, about 200 px tall."""
    poses = STANDING[:, :2] * 118 + rng.normal(0, 6, (count, 17, 2)) + rng.uniform(0, spread, (count, 1, 2)) + 100
    return poses.astype(np.float32)


def seen(poses):
    ones = np.ones(poses.shape[:2], np.float32)
    where = Regions(poses.mean(axis=1), np.full((len(poses), 2), 280, np.float32), np.zeros(len(poses), np.float32))
    return Observations.of(
        [PersonTrack(where[[row]]) for row in range(len(poses))], Keypoints2D(poses, ones, ones[:, 0], where)
    )


def blurred(part, step):
    """A blurred crop: each cell of about BLUR_CELL_PX px is the mean of SAMPLES_PER_CELL ** 2 samples."""
    height, width = part.shape[:2]
    rows, columns = (max(1, side * step // BLUR_CELL_PX) for side in (height, width))
    y, x = (
        np.floor(np.arange(count) * (1 / (count / side))).astype(int)  # in floating point, as OpenCV does
        for count, side in ((SAMPLES_PER_CELL * rows, height), (SAMPLES_PER_CELL * columns, width))
    )
    samples = part[y[:, None], x].reshape(rows, SAMPLES_PER_CELL, columns, SAMPLES_PER_CELL, 3)
    cells = np.rint(samples.mean(axis=(1, 3))).astype(np.uint8)
    return cv2.resize(cells, (width, height), interpolation=cv2.INTER_LINEAR)


def painted(shape, pose, skeleton):
    """The mask of a body (J, 2) px, drawn line by line."""
    mask = np.zeros(shape, np.uint8)
    trunk = [skeleton.index(f"{side}_{part}") for part in ("shoulder", "hip") for side in ("left", "right")]
    top, bottom = pose[trunk[:2]].mean(axis=0), pose[trunk[2:]].mean(axis=0)
    length = np.linalg.norm(top - bottom)
    points, width = np.rint(pose).astype(np.int32), max(2, round(LIMB_WIDTH * length))
    of_limbs = {"shoulder", "elbow", "wrist", "hip", "knee", "ankle"}
    for bone in skeleton.edges:
        if all(of_limbs & set(skeleton.names[joint].split("_")) for joint in bone):
            cv2.line(mask, *points[list(bone)].tolist(), 255, width)
    for bone in ((trunk[0], trunk[3]), (trunk[1], trunk[2])):
        cv2.line(mask, *points[list(bone)].tolist(), 255, width)
    cv2.fillConvexPoly(mask, cv2.convexHull(points[trunk]), 255)
    face = [j for j, name in enumerate(skeleton.names) if {"nose", "eye", "ear", "head"} & set(name.split("_"))]
    cv2.circle(mask, points[face].mean(axis=0).astype(int).tolist(), round(HEAD_RADIUS * length), 255, -1)
    return mask > 0


@pytest.mark.parametrize("skeleton", [H36M17, BLAZEPOSE33], ids=lambda skeleton: skeleton.name)
@pytest.mark.parametrize("side", [150.0, 380.0, 2.5 * MAX_CROP_PX, 4.2 * MAX_CROP_PX, 6.0 * MAX_CROP_PX])
def test_masked_people_are_replaced_by_a_blur_of_the_crop(skeleton, side, rng):
    image = rng.integers(0, 256, (1920, 1088, 3), dtype=np.uint8)
    for angle in (0.0, 0.4, -2.0):
        center = rng.uniform(0, [1088, 1920]).astype(np.float32)
        where = Regions(center[None], np.full((1, 2), side, np.float32), np.full(1, angle, np.float32))
        reach = (abs(np.cos(angle)) + abs(np.sin(angle))) * side / 2
        low = np.clip(np.floor(center - reach), 0, None).astype(int)
        high = np.clip(np.ceil(center + reach), None, [1088, 1920]).astype(int)
        step = max(1, int(2 * reach) // MAX_CROP_PX)
        rows, columns = (high - low)[::-1] // step
        thinned = image[low[1] : high[1] : step, low[0] : high[0] : step][:rows, :columns]
        pose = center + rng.normal(0, side / 6, (len(skeleton), 2)).astype(np.float32)
        covered = painted(thinned.shape[:2], (pose - low) / step, skeleton)
        part = PersonMasker(skeleton).mask(image, where, [pose])
        assert part.step == step
        np.testing.assert_array_equal(part.corner, low)
        np.testing.assert_array_equal(part.image, np.where(covered[..., None], blurred(thinned, step), thinned))


def test_appearance_is_the_median_colour_of_trunk_and_thighs(rng):
    image = rng.integers(0, 256, (300, 400, 3), dtype=np.uint8)
    names = H36M17.names
    for pose in persons(rng, 20):
        joint = dict(zip(names, pose, strict=True))

        def between(a, b, share):
            return a + np.float32(share) * (b - a)

        trunk = [
            between(
                *(between(joint[f"left_{part}"], joint[f"right_{part}"], x) for part in ("shoulder", "hip")), share=y
            )
            for y in DOWN_FRACTIONS
            for x in ACROSS_FRACTIONS
        ]
        thighs = [
            between(joint[f"{side}_hip"], joint[f"{side}_knee"], t)
            for t in THIGH_FRACTIONS
            for side in ("left", "right")
        ]
        for number, points in enumerate((trunk, thighs)):
            at = np.rint(points).astype(int).clip(0, [399, 299])
            colour = np.median(image[at[:, 1], at[:, 0]].astype(np.float32), axis=0) / np.float32(255)
            np.testing.assert_array_equal(PersonModel(H36M17).clothing_colours(image, pose)[number], colour)


def test_duplicate_tracks_have_a_small_median_joint_distance(rng):
    twice = 0
    for _ in range(50):
        poses = persons(rng, 5, spread=60)
        now = seen(poses)
        now.tracks[2].occluders = [now.tracks[0]]
        sizes = (poses.max(axis=1) - poses.min(axis=1)).max(axis=1)
        found = []
        for row in range(5):
            near = []
            for other in [other for other in range(row) if not found[other]]:
                limit = MAX_MASKED_DUPLICATE_DISTANCE if {row, other} == {0, 2} else MAX_DUPLICATE_DISTANCE
                distance = np.median(np.linalg.norm(poses[row] - poses[other], axis=1))
                near.append(distance < limit * max(sizes[row], sizes[other]))
            found.append(any(near))
        assert duplicates(now).tolist() == found
        twice += sum(found)
    assert 20 < twice < 180


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_box_encloses_visible_or_all_joints(share, rng):
    poses = persons(rng, 30)
    valid = rng.random(poses.shape[:2]) < share
    valid[:10] = True
    for pose, of_pose, box in zip(poses, valid, crops.bounds(poses, valid), strict=True):
        points = pose[of_pose] if of_pose.any() else pose
        np.testing.assert_array_equal(box, [*points.min(axis=0), *points.max(axis=0)])
