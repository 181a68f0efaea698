"""HTML section on several cameras or one moving camera, with a view from above and a table."""

import math
from collections.abc import Iterator

import numpy as np

from pose.results import Recording
from pose.results.cameras import ResultCamera, result_cameras
from pose.structures.colours import rim_colour
from pose.utils.shown import shown_in_html
from pose.view.top_view import CameraMark, GroundPath, top_view
from pose.world.frame import World

MAX_PEOPLE = 12  # maximum number of drawn paths
MAX_DIRECTIONS = 24  # number of drawn viewing directions of a moving camera, evenly over time
_CAMERA_COLOUR = (90, 98, 112)


def cameras_section(table: Recording) -> Iterator[str]:
    """Yield the HTML section on several cameras or a moving one; yield nothing for other results.

    The result must have world coordinates.
    """
    cameras = result_cameras(table.run)
    if table.world_info is None or table.placed is None:
        return
    if not cameras:
        yield from _path_section(table)
        return
    world = table.world_info.world
    marks = [
        CameraMark(
            camera.name,
            world.place(camera.place),
            world.rotation @ camera.rotation[2],
            camera.half_view,
            camera.place_sigma,
        )
        for camera in cameras
    ]
    yield '<section class="cameras"><h2>Cameras</h2>\n<figure class="plan"><b>From above</b>'
    yield top_view(_paths(table), marks)
    yield (
        "<figcaption>Squares: cameras, with the viewing direction, a part of the field of view and, dashed, one "
        "standard deviation of the position. Lines: paths of the people's pelvis from the dot to the ring."
        "</figcaption></figure>\n"
    )
    yield "<table><tr><th>camera</th><th>x, z, m</th><th>starts at</th><th>reprojection</th></tr>"
    yield from (_row(camera, world, number) for number, camera in enumerate(cameras))
    yield "</table>\n"
    name = shown_in_html(cameras[0].name)
    yield f'<p class="quiet">x to the right, z towards {name} (down in the plan); '
    yield "\u00b1: standard deviation relative to it.</p>"
    yield "</section>\n"


def _path_section(table: Recording) -> Iterator[str]:
    """Yield the HTML section of one moving camera."""
    if table.camera is None or table.camera_rotation is None or table.camera_zoom is None or table.world_info is None:
        return
    world, count = table.world_info.world, len(table)
    known_frames = np.arange(count) if table.camera_sigma is None else np.flatnonzero(np.isfinite(table.camera_sigma))
    if not len(known_frames):
        return
    shown = known_frames[np.unique(np.linspace(0, len(known_frames) - 1, MAX_DIRECTIONS).round().astype(int))]
    moved = np.zeros((count, 3)) if table.camera_position is None else table.camera_position.astype(np.float64)
    positions = np.full((count, 3), np.nan)
    positions[known_frames] = world.place(moved[known_frames])
    forward = table.camera_rotation[shown].astype(np.float64)[:, :, 2] @ world.rotation.T
    half_view = math.atan(table.camera.size[0] / 2 / float(table.camera.matrix[0, 0] * table.camera_zoom[0]))
    later_poses = np.stack([positions[shown], forward], axis=1)
    paths = _paths(table)
    if table.camera_position is not None:
        paths = [GroundPath("", positions, _CAMERA_COLOUR, dashed=True), *paths]
    yield '<section class="cameras"><h2>Camera</h2>\n<figure class="plan"><b>From above</b>'
    yield top_view(
        paths, [CameraMark("camera", positions[known_frames[0]], forward[0], half_view, later_poses=later_poses)]
    )
    yield (
        "<figcaption>Square: the camera at the start, with a part of its field of view. Thin lines: its viewing "
        f"direction at {len(shown)} times. Lines: paths of the people's pelvis from the dot to the ring"
        f"{'; dashed: path of the camera' if table.camera_position is not None else ''}. Grid in metres."
        "</figcaption></figure>\n"
    )
    if table.run is not None and (info := table.run.motion) is not None:
        one = info.motion
        yield f'<p class="quiet">{one.kind}; pan {one.pan:.1f}, tilt {one.tilt:.1f}, roll {one.roll:.1f} degrees; zoom '
        yield f"{100 * (one.zoom - 1):.0f} %; view known in {one.known:.0%} of the frames with people</p>"
    yield "</section>\n"


def _row(one: ResultCamera, world: World, number: int) -> str:
    right, up, back = world.place(one.place)
    height = f"{up:.2f} above the floor" if world.floor_known else "height unknown"
    sigma = "" if number == 0 else f"; \u00b1 {one.place_sigma:.2f}, rotation \u00b1 {one.turn_sigma:.1f} degrees"
    position = f"{right:.2f}, {back:.2f}<small>{height}{sigma}</small>".replace("-", "\u2212")
    start = f"{one.offset:.3f} s" + ("" if number == 0 else f"<small>\u00b1 {1000 * one.offset_sigma:.0f} ms</small>")
    residual = "" if math.isnan(one.residual_px) else f"{one.residual_px:.1f} px"
    name = f"{shown_in_html(one.name)}<small>focal length {one.matrix[0, 0]:.0f} px</small>"
    return f"<tr><td>{name}</td><td>{position}</td><td>{start}</td><td>{residual}</td></tr>"


def _paths(table: Recording) -> list[GroundPath]:
    """Return the paths of the people with the most frames; NaN in gaps."""
    assert table.placed is not None
    ids, counts = np.unique(table.id, return_counts=True)
    paths = []
    for person in sorted(ids[np.argsort(-counts, kind="stable")][:MAX_PEOPLE].tolist()):
        rows = table.rows_of(person)
        positions = table.placed.joints[rows, 0].astype(np.float64)
        breaks = np.flatnonzero(np.diff(table.frame_index[rows]) > 1) + 1
        positions = np.insert(positions, breaks, np.nan, axis=0)
        paths.append(GroundPath(f"person {person}", positions, rim_colour(person)))
    return paths
