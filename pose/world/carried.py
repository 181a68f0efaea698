"""Path of a carried camera in metres. Structure from motion on key frames gives the path up to scale; people give the
scale.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton
from pose.structures.types import Frame, FrameResult
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.structure import has_colmap, reconstruct
from pose.world.camera_motion.travel import choose_keys, key_images, scaled_matrix, with_translation
from pose.world.camera_motion.verdict import TRANSLATING
from pose.world.clean import Steps, prepare
from pose.world.store import SeenPeople, Works
from pose.world.travel_scale import Scale, find_scale

Images = Callable[[], Iterator[Frame]]

INSTALL = "pip install 'pose-run[slam]' estimates translation"


@dataclass(frozen=True, slots=True)
class RunData:
    """Access to the recorded data of a run."""

    results: Iterable[FrameResult]  # results of the run; can be iterated repeatedly
    skeleton: Skeleton  # joint set of the 2D keypoints
    camera: Camera  # intrinsics of the camera
    # Function that returns an iterator over the frames of the run; None if they are not available.
    images: Images | None = None
    folder: Path | None = None  # folder for unnamed temporary files; None for the system's temporary folder


def carry(decision: Decision, run: RunData, steps: Steps) -> Decision:
    """Estimate the translation of a camera that may be carried, and return the decision with its path in metres.

    Without a reliable reconstruction, the decision is returned with the reason in `translation`, and otherwise
    unchanged.

    Args:
        decision: Decision from the background alone; its `measured` path must not be None.
        steps: Steps to run for the people who give the scale, and known properties of camera and people.
    """
    assert decision.measured is not None
    found = _travel(run, decision.measured, steps)
    if isinstance(found, str):
        return replace(decision, translation=found)
    path, scale = found
    assert path.positions is not None
    distance = float(np.linalg.norm(np.diff(path.positions, axis=0), axis=1).sum())
    sigma = distance * scale.sigma
    motion = replace(decision.motion, kind=TRANSLATING, distance=distance, distance_sigma=sigma)
    return Decision(motion, path, check_feet=True, measured=decision.measured)


def _travel(run: RunData, path: CameraPath, steps: Steps) -> tuple[CameraPath, Scale] | str:
    if not has_colmap():
        return INSTALL
    if run.images is None:
        return "the images are not available any more"
    keys = choose_keys(path)
    if isinstance(keys, str):
        return keys
    pairs = ((frame, result.people) for frame, result in zip(run.images(), run.results, strict=False))
    images, reduced = key_images(pairs, keys, run.skeleton)
    if len(images) < len(keys):
        return "the images are not available any more"
    found = reconstruct(images, scaled_matrix(run.camera.matrix, reduced), run.camera.known)
    if isinstance(found, str):
        return found
    unscaled = with_translation(path, keys, found)
    with SeenPeople(run.skeleton, run.camera, run.folder) as people, Works(run.folder) as works:
        people.gather(run.results)
        still = replace(steps, path=replace(unscaled, positions=None))
        for number, person in people.items():
            works.add(number, prepare(number, person, people.frames, still))
        scale = find_scale(works, unscaled, found.depth)
    if isinstance(scale, str):
        return scale
    assert unscaled.positions is not None
    return replace(unscaled, positions=scale.value * unscaled.positions), scale
