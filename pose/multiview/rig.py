"""Estimation of cameras and people from the tracks of several cameras, with checks of the result."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pose.errors import PoseError
from pose.multiview import residuals as r
from pose.multiview.bundle import BodyUnknowns, BundleAdjustment, Freedom, Solution, start_body
from pose.multiview.calibrate import (
    CORRELATION_FACTOR,
    MAX_ROUGH_KNOTS,
    Adjusted,
    Known,
    adjust,
    body_scale,
    calibration_windows,
    is_shared,
    start_cameras,
    start_points,
)
from pose.multiview.clocks import ClockHint
from pose.multiview.common_clock import common_clock
from pose.multiview.identities import find_people, merge_tracks
from pose.multiview.initialise import Link
from pose.multiview.joints import residuals_px
from pose.multiview.linking import MisfitError, clock_notes, clock_sources, find_links, given_notes, remedy, same_scene
from pose.multiview.observations import BODY_HEIGHT, Observed, distinct_share, knots_of, observe
from pose.multiview.types import CameraBatch, ViewCamera, ViewTrack
from pose.structures.types import F64

MAX_RESIDUAL = 0.05  # maximum median reprojection error, relative to a body's height in the image
MIN_BASELINE = 0.03  # minimum baseline of two cameras, relative to the distance of people; see `_check`
MIN_ROTATION_DEGREES = 4.0  # degrees, minimum rotation between two cameras with a shorter baseline
# Factors on the standard deviations of clock offsets and rotations of cameras that are calibrated from people, fitted
# to 21 cameras of scenes of training subjects (docs/studies/cameras.md). An error of the pose moves the clock.
CLOCK_FACTOR, ROTATION_FACTOR = 10.0, 4.0
MIN_DISTINCT = 0.02  # smallest share of distinct observations that counts
MAX_GOOD_RESIDUAL = 0.02  # reprojection error, relative likewise, above which a note reports a poor fit
# Maximum standard deviations of rotation, and of position relative to the distance of people, without a note.
MAX_SIGMA_DEGREES, MAX_POSITION_SIGMA = 5.0, 0.15


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Estimated accuracy of one camera: standard deviations, and the reprojection error."""

    rotation: float  # standard deviation of the rotation, degrees
    position: float  # standard deviation of the optical centre, m
    focal: float  # standard deviation of the focal length, px
    radial: float  # standard deviation of the distortion coefficient k1
    offset: float  # standard deviation of the clock offset, s
    drift: float  # standard deviation of the clock drift, s/s
    residual: float  # median reprojection error, px; NaN without observations
    relative: float = math.nan  # the same, relative to the height of a body in the image


@dataclass(frozen=True, slots=True)
class Rig:
    """Calibrated cameras and matched people."""

    cameras: list[ViewCamera]  # cameras in the frame of the first one
    people: list[dict[int, ViewTrack]]  # tracks of each person, by camera index
    tracks: list[list[tuple[int, int]]]  # pairs (camera index, track id) of all tracks of each person
    bones: list[F64]  # lengths (B,) m of the B bones `residuals.BONES` of each person
    accuracy: list[Accuracy]  # accuracy of each camera
    scale: float  # factor by which lifted bodies are scaled
    clocks: list[tuple[str, ...]]  # evidence for each camera's clock offset, from `linking.clock_sources`
    notes: list[str] = field(default_factory=list)  # warnings about the calibration, one line each


def find_rig(
    tracks: Sequence[ViewTrack],
    initial_cameras: Sequence[ViewCamera],
    names: Sequence[str],
    known: Known | None = None,
    hints: Sequence[ClockHint] = (),
    log: Callable[[str], None] = lambda step: None,
) -> Rig:
    """Find clock offsets, identities and cameras that `known` does not give; PoseError if it fails."""
    known = known or Known()
    for index, name in enumerate(names):
        if not any(track.camera == index for track in tracks):
            wrong = f"{name}: no person found; every camera must see a person that another one sees"
            raise MisfitError(wrong, index)
    cameras, links, clock_sigma = list(initial_cameras), list[Link](), dict[int, float]()
    if known.poses and not known.clocks:
        log("time offsets")
        decided = common_clock(tracks, initial_cameras, names, known, hints)
        cameras, links, clock_sigma = decided.cameras, decided.links, decided.sigma
        known = replace(known, same_clock=decided.same)
    elif not known.poses:
        log("time offsets")
        links = find_links(tracks, initial_cameras, names, known, hints)
        if known.refine_poses:
            cameras = [
                replace(camera, offset=new.offset)
                for camera, new in zip(initial_cameras, start_cameras(initial_cameras, links), strict=True)
            ]
        else:
            cameras = start_cameras(initial_cameras, links)
        log("cameras from the best matches")
        cameras = adjust(_linked_people(tracks, links), cameras, known, rough=True).solution.cameras
    log("identities")
    clusters = find_people(tracks, cameras)
    people = [merge_tracks(tracks, rows) for rows in clusters]
    shared = [by_camera for by_camera in people if len(by_camera) >= 2]
    if not shared:
        raise PoseError(f"{', '.join(names)}: no person is seen by two cameras at once; {remedy(known)}")
    log("cameras")
    adjusted = adjust(shared, cameras, known)
    solution, seen = adjusted.solution, adjusted.seen
    cameras = solution.cameras
    scale = body_scale(solution.bodies, seen)
    clock_factor = CORRELATION_FACTOR if known.poses else CLOCK_FACTOR
    # Observations that repeat earlier ones have the same errors, and add no information.
    solution = replace(solution, deviation=solution.deviation / math.sqrt(max(distinct_share(seen), MIN_DISTINCT)))
    accuracy = [_accuracy(solution, seen, index, clock_factor) for index in range(len(cameras))]
    accuracy = [replace(one, offset=clock_sigma.get(index, one.offset)) for index, one in enumerate(accuracy)]
    _check(cameras, accuracy, seen, names, known)
    numbers = [[(tracks[row].camera, tracks[row].number) for row in rows] for rows in clusters]
    clocks = clock_sources(cameras, tracks, known, hints)
    notes = [*_notes(cameras, accuracy, seen, names), *(moved_notes(shared, cameras, names) if known.poses else [])]
    notes += (
        given_notes(cameras, names, tracks)
        if known.clocks
        else clock_notes(cameras, names, clocks, links, hints, known)
    )
    rig = Rig(cameras, people, numbers, _bones(people, shared, adjusted), accuracy, scale, clocks, notes)
    # The lifter's prior is too weak to keep the scale while cameras move, but it is the only measure of it.
    return rig if known.poses or known.refine_poses else rescaled(rig, 1 / scale)


def rescaled(rig: Rig, factor: float) -> Rig:
    """Return the rig with all lengths multiplied by `factor`."""
    return replace(
        rig,
        cameras=[replace(camera, translation=factor * camera.translation) for camera in rig.cameras],
        bones=[factor * bones for bones in rig.bones],
        accuracy=[replace(one, position=factor * one.position) for one in rig.accuracy],
        scale=factor * rig.scale,
    )


def _linked_people(tracks: Sequence[ViewTrack], links: Sequence[Link]) -> list[dict[int, ViewTrack]]:
    """Return people as tracks by camera; tracks connected by links, also through other cameras, are one person."""
    owner = list(range(len(tracks)))
    for link in links:
        for a, b in link.pairs:
            old, new = owner[b], owner[a]
            owner = [new if one == old else one for one in owner]
    groups = [[row for row in range(len(tracks)) if owner[row] == one] for one in sorted(set(owner))]
    return [merge_tracks(tracks, rows) for rows in groups if len({tracks[row].camera for row in rows}) >= 2]


def _bones(
    people: Sequence[dict[int, ViewTrack]], shared: Sequence[dict[int, ViewTrack]], adjusted: Adjusted
) -> list[F64]:
    """Return each person's bone lengths: the others' mean if never seen by two cameras at once."""
    bodies = adjusted.solution.bodies
    weight = np.array([float(len(body.points)) for body in bodies])
    owners = np.array([id(shared[row]) for row in adjusted.owners])
    bones = np.stack([body.bones for body in bodies])
    means = []
    for tracks in people:
        own_weight = weight * (owners == id(tracks))
        chosen = own_weight if own_weight.any() else weight
        mean: F64 = (chosen[:, None] * bones).sum(axis=0) / chosen.sum()
        means.append(mean)
    return means


def _accuracy(solution: Solution, seen: Sequence[Observed], index: int, clock_factor: float) -> Accuracy:
    camera, deviation = solution.cameras[index], CORRELATION_FACTOR * solution.deviation[index]
    off = [
        residuals_px(item, np.stack([each.project(body.points) for each in solution.cameras]))[index]
        for item, body in zip(seen, solution.bodies, strict=True)
    ]
    every = np.concatenate([item[np.isfinite(item)] for item in off])
    position_sigma = float(np.linalg.norm(deviation[r.TRANSLATION]))
    residual = float(np.median(every)) if len(every) else math.nan
    return Accuracy(
        rotation=math.degrees(ROTATION_FACTOR * float(np.linalg.norm(solution.deviation[index, r.ROTATION]))),
        position=position_sigma,
        focal=camera.focal * float(deviation[r.FOCAL]),
        radial=float(deviation[r.RADIAL]),
        offset=float(clock_factor * solution.deviation[index, r.OFFSET]),
        drift=float(deviation[r.DRIFT]),
        residual=residual,
        relative=residual * _distance(camera, seen, index) / (camera.focal * BODY_HEIGHT),
    )


def _distance(camera: ViewCamera, seen: Sequence[Observed], index: int) -> float:
    """Return the median distance of people from a camera, m."""
    depth = [one.root[index][one.present[index], 2] for one in seen]
    every = np.concatenate(depth) if depth else np.zeros(0)
    return float(np.median(every)) if len(every) else 4.0


def _check(
    cameras: Sequence[ViewCamera],
    accuracy: Sequence[Accuracy],
    seen: Sequence[Observed],
    names: Sequence[str],
    known: Known,
) -> None:
    """Check that the reprojection errors are small and that no two cameras have the same pose."""
    errors = [quality.relative for quality in accuracy]
    index = max(range(len(cameras)), key=lambda row: errors[row] if math.isfinite(errors[row]) else math.inf)
    if not errors[index] <= MAX_RESIDUAL:
        what = "the calibration does not fit" if known.poses else "its motion does not fit the other cameras'"
        found = f"{accuracy[index].residual:.0f} px" if math.isfinite(errors[index]) else "unknown: no person matches"
        raise MisfitError(
            f"{names[index]}: {what} (reprojection error {found}); {same_scene(known)}, and is the camera static? "
            f"{remedy(known)}",
            index,
        )
    for index, camera in enumerate(cameras):
        for other in range(index):
            turn = _angle_between(camera, cameras[other])
            apart = float(np.linalg.norm(camera.position - cameras[other].position))
            if turn < MIN_ROTATION_DEGREES and apart < MIN_BASELINE * _distance(camera, seen, index):
                raise PoseError(
                    f"{names[index]}: it shows the same view as {names[other]}; two cameras at one place, or one video "
                    "given twice, show no depth"
                )


def _angle_between(one: ViewCamera, other: ViewCamera) -> float:
    cosine = (np.trace(one.rotation @ other.rotation.T) - 1) / 2
    return math.degrees(math.acos(float(np.clip(cosine, -1, 1))))


def _notes(
    cameras: Sequence[ViewCamera], accuracy: Sequence[Accuracy], seen: Sequence[Observed], names: Sequence[str]
) -> list[str]:
    notes = []
    for index, (camera, one) in enumerate(zip(cameras, accuracy, strict=True)):
        spread = one.position / _distance(camera, seen, index)
        if one.rotation > MAX_SIGMA_DEGREES or spread > MAX_POSITION_SIGMA:
            notes.append(
                f"{names[index]}: its place is uncertain ({one.rotation:.0f} degrees, {100 * spread:.0f} % of the "
                "distance); cameras 60 to 120 degrees apart and people who move about help"
            )
        if one.relative > MAX_GOOD_RESIDUAL:
            notes.append(
                f"{names[index]}: it fits the other cameras poorly (reprojection error {one.residual:.0f} px); check "
                "its calibration, its start time, and whether tracks swap people"
            )
    if len(cameras) == 2:
        turn = _angle_between(*cameras)
        if turn < 15 or turn > 165:
            side = "side by side" if turn < 15 else "opposite each other"
            notes.append(f"the cameras stand {side} ({turn:.0f} degrees): depth is uncertain")
    return notes


MIN_DEGREES = 1.5  # minimum rotation that is reported
MIN_DEVIATIONS = 5.0  # minimum rotation in standard deviations; large, because 2D errors are correlated over time
STEPS = 6  # iterations of the bundle adjustment per camera


@dataclass(frozen=True, slots=True)
class CameraRotation:
    """Rotation of a camera about its centre that fits the people best."""

    degrees: float  # angle of the rotation
    deviation: float  # standard deviation of the angle in degrees, for independent residuals
    gain: float  # decrease of the cost of bundle adjustment by this rotation


def camera_rotations(people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera]) -> list[CameraRotation]:
    """Return the best-fitting rotation of each camera while all other cameras are fixed."""
    seen = [
        observe(tracks, cameras, knots_of(tracks, cameras, grid), width=0.03)
        for grid in calibration_windows(people, cameras, MAX_ROUGH_KNOTS)
        for tracks in people
        if is_shared(tracks, cameras, grid)
    ]
    bodies = [start_body(start_points(item, CameraBatch.of(cameras))) for item in seen]
    fixed = BundleAdjustment(seen, _only_rotation(len(cameras), None)).solve(
        cameras, bodies, iterations=15, tolerance=1e-3
    )
    rotations = []
    for index, camera in enumerate(cameras):
        # With the origin of the world at the camera's centre, a rotation does not move the centre.
        moved = [replace(item, translation=item.rotation @ camera.position + item.translation) for item in cameras]
        shifted_bodies = [BodyUnknowns(body.points - camera.position, body.bones) for body in fixed.bodies]
        bundle = BundleAdjustment(seen, _only_rotation(len(cameras), index))
        solution = bundle.solve(moved, shifted_bodies, STEPS, tolerance=1e-3, covariance=True)
        cosine = (np.trace(solution.cameras[index].rotation @ camera.rotation.T) - 1) / 2
        deviation = math.degrees(float(np.linalg.norm(solution.deviation[index, r.ROTATION])))
        rotations.append(
            CameraRotation(
                math.degrees(math.acos(float(np.clip(cosine, -1, 1)))), deviation, fixed.cost - solution.cost
            )
        )
    return rotations


def moved_notes(
    people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera], names: Sequence[str]
) -> list[str]:
    """Return a warning if people fit better with one camera rotated (of two, it is unknown which); else none."""
    turns = camera_rotations(people, cameras)
    index = int(np.argmax([turn.gain for turn in turns]))
    turn = turns[index]
    if turn.degrees < MIN_DEGREES or turn.degrees < MIN_DEVIATIONS * turn.deviation:
        return []
    which = f"{names[index]} is" if len(cameras) > 2 else "one of the two cameras is"
    return [f"people fit better if {which} rotated by {turn.degrees:.1f} degrees; was it moved since the calibration?"]


def _only_rotation(cameras: int, which: int | None) -> Freedom:
    shape = (cameras, r.PARAMETERS)
    free = np.zeros(shape, bool)
    if which is not None:
        free[which, r.ROTATION] = True
    return Freedom(free, np.zeros(shape), np.zeros(shape))
