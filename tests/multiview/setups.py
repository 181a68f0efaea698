"""What set-ups of several cameras are made of: functions that make tracks, and what is true of them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import scenes

from pose.multiview.calibrate import Known
from pose.multiview.types import ViewCamera, ViewTrack
from pose.structures.skeletons import H36M17

SECONDS = 5.0
ONE = scenes.person(1, SECONDS)
LEFT = scenes.person(1, SECONDS, away=(-0.9, 0.0))
RIGHT = scenes.person(5, SECONDS, away=(0.9, 0.3))


@dataclass
class Setup:
    """tracks and cameras, as `find_rig` takes them, and the truth: cameras, and who each (camera, number) is."""

    tracks: list[ViewTrack]
    told: list[ViewCamera]
    truth: list[ViewCamera]
    known: Known = field(default_factory=Known)
    people: dict[tuple[int, int], int] | None = None  # None: number n is person n


SETUPS: dict[str, Callable[[], Setup]] = {}


def setup(make: Callable[[], Setup]) -> Callable[[], Setup]:
    SETUPS[make.__name__.removeprefix("_")] = make
    return make


def filmed(people, azimuths=(0.0, 90.0), noise_px=2.0, seed=2, seconds=SECONDS, **changes) -> Setup:
    views = scenes.cameras(azimuths, people=people, seed=seed, seconds=seconds, **{"offset": 1.0, **changes})
    return of_views(views, people, noise_px)


def of_views(views, people, noise_px=2.0) -> Setup:
    tracks = [
        scenes.track(view, i, points, number=n + 1, noise_px=noise_px)
        for i, view in enumerate(views)
        for n, points in enumerate(people)
    ]
    return Setup(tracks, scenes.told(views), scenes.exact(views))


def changed(track: ViewTrack, **parts) -> ViewTrack:
    return replace(track, **parts)


def still(points, frame=60):
    return np.repeat(points[frame : frame + 1], len(points), axis=0)


def turned(degrees, axis=1):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    out = np.eye(3)
    a, b = (axis + 1) % 3, (axis + 2) % 3
    out[a, a], out[a, b], out[b, a], out[b, b] = c, -s, s, c
    return out


def moved_camera(view, rotation=None, place=None):
    rotation = view.rotation if rotation is None else rotation
    place = -view.rotation.T @ view.translation if place is None else place
    return replace(view, rotation=rotation, translation=-rotation @ place)


def mirrored(track: ViewTrack, camera: ViewCamera, index: int) -> ViewTrack:
    """As a selfie camera shows a person: left is right."""
    order = [H36M17.index(swapped_name(name)) for name in H36M17.names]
    keypoints = track.keypoints[:, order].copy()
    keypoints[..., 0] = 2 * camera.centre[0] - keypoints[..., 0]
    flip = np.array([-1, 1, 1], np.float32)
    return changed(
        track, camera=index, keypoints=keypoints, joints=track.joints[:, order] * flip, root=track.root * flip
    )


def swapped_name(name: str) -> str:
    side, _, rest = name.partition("_")
    return {"left": f"right_{rest}", "right": f"left_{rest}"}.get(side, name)


def joined(one: ViewTrack, other: ViewTrack) -> ViewTrack:
    parts = ("times", "keypoints", "scores", "joints", "root", "sigma")
    return changed(one, **{name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in parts})
