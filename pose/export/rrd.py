"""A Rerun recording: cameras, images, 2D joints, 3D joints and bones, and spheres with the radius of each joint's
uncertainty.
"""

from pathlib import Path
from typing import Any

import numpy as np

from pose.body.selection import CHUNK
from pose.body.timeline import TrackSpan
from pose.body.tracks import Selection, Track
from pose.export.format import MAX_PEOPLE, Notes, SceneFormat, people_with_most_frames
from pose.export.glb_camera import Viewpoint, viewpoints
from pose.results.cameras import result_cameras
from pose.structures.colours import SIDE_COLOURS, edge_side, person_colour
from pose.structures.defaults import CAMERA
from pose.structures.hand_points import BONES, SIDES
from pose.structures.rotations import from_matrix
from pose.structures.skeletons import H36M17, Skeleton
from pose.structures.types import F32, I64
from pose.utils.whole_file import whole_file

TIMELINE = "video"
JPEG_QUALITY = 75
LIMB_RADIUS_M = 0.02  # m
_XYZW = [1, 2, 3, 0]  # Rerun's quaternions are x y z w
FINGER_RADIUS_M = 0.004  # m
SIGMA_ALPHA = 40  # opacity of the uncertainty spheres, 0 to 255


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the people with the ids `people` as a Rerun recording, and return notes for the export summary."""
    import rerun

    shown, fewer = people_with_most_frames(recording, people, MAX_PEOPLE)
    with whole_file(target) as hidden:
        stream = rerun.RecordingStream("pose-convert")
        stream.save(str(hidden))
        note = _log_cameras(stream, recording, rerun)
        for person in shown:
            _log_2d(stream, recording, person, rerun)
            track = recording.track(person, recording.timeline)
            if track is not None:
                for span in track.spans():
                    _log_3d(stream, track, span, rerun)
        if recording.video is not None:
            _log_images(stream, recording, rerun)
        stream.flush()
        stream.disconnect()
    images_note = "with" if recording.video is not None else "without (give --video)"
    return [f"metres, {note}; {images_note} images", *fewer]


def _log_cameras(stream: Any, recording: Selection, rerun: Any) -> str:
    """Log cameras with poses in `recording.space`, per frame if moving; return the frame's description."""
    space = recording.space
    axes = rerun.ViewCoordinates.RDF if space.name == CAMERA else rerun.ViewCoordinates.RIGHT_HAND_Y_UP
    stream.log("world", axes, static=True)
    back = space.rotation if space.name == CAMERA else np.eye(3)  # from file axes to the axes of the logged joints
    for number, view in enumerate(viewpoints(recording, space), 1):
        path, index = _path(number), rerun.TimeColumn(TIMELINE, duration=view.times)
        positions, quaternions = view.positions @ back, from_matrix(back.T @ view.rotations)[:, _XYZW]
        if len(quaternions) == 1:
            stream.log(path, rerun.Transform3D(translation=positions[0], quaternion=quaternions[0]), static=True)
        else:
            moved = rerun.Transform3D.columns(translation=positions, quaternion=quaternions)
            stream.send_columns(path, indexes=[index], columns=moved)
        if not np.ptp(view.zooms):
            stream.log(path, _pinhole(view, float(view.zooms[0]), rerun), static=True)
            continue
        for time, zoom in zip(view.times.tolist(), view.zooms.tolist(), strict=True):
            stream.set_time(TIMELINE, duration=time)
            stream.log(path, _pinhole(view, zoom, rerun))
    return space.note if space.name != CAMERA else "x right, y down, z forward"


def _pinhole(view: Viewpoint, zoom: float, rerun: Any) -> Any:
    matrix = view.matrix * [[zoom], [zoom], [1]]
    matrix[:2, 2] = view.matrix[:2, 2]
    return rerun.Pinhole(image_from_camera=matrix, resolution=view.size, camera_xyz=rerun.ViewCoordinates.RDF)


def _log_2d(stream: Any, recording: Selection, person: int, rerun: Any) -> None:
    table = recording.table
    if table.camera is None:
        return
    rows = recording.rows_of(person)
    edges, colours = _limbs(table.skeleton)
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        points, seen = table.keypoints[part], np.asarray(table.scores[part] > 0)
        strips = np.asarray(points[:, edges])[(seen[:, edges[:, 0]] & seen[:, edges[:, 1]])]
        drawn = seen[:, edges[:, 0]] & seen[:, edges[:, 1]]
        columns = rerun.LineStrips2D.columns(
            strips=strips, colors=np.tile(colours, (len(part), 1, 1))[drawn], radii=np.full(len(strips), 1.5)
        )
        _send(stream, f"world/camera/picture/person{person}", recording, part, columns, drawn.sum(axis=1), rerun)
        recording.release()


def _send(
    stream: Any, path: str, recording: Selection, rows: I64, columns: Any, lengths: np.ndarray, rerun: Any
) -> None:
    times = recording.times[np.searchsorted(recording.frames, recording.table.frame_index[rows])]
    index = rerun.TimeColumn(TIMELINE, duration=times)
    stream.send_columns(path, indexes=[index], columns=columns.partition(lengths))


def _log_3d(stream: Any, track: Track, span: TrackSpan, rerun: Any) -> None:
    """Log 3D joints; clear them in frames without the person."""
    known, joints = span.known, len(H36M17)
    points: F32 = track.space.to_table(span.joints[known]).astype(np.float32)
    index = rerun.TimeColumn(TIMELINE, duration=span.times)
    edges, colours = _limbs(H36M17)
    path = f"world/person{track.person}"
    bones = rerun.LineStrips3D.columns(
        strips=points[:, edges].reshape(-1, 2, 3),
        colors=np.tile(colours, (len(points), 1)),
        radii=np.full(len(points) * len(edges), LIMB_RADIUS_M),
    )
    stream.send_columns(f"{path}/bones", indexes=[index], columns=bones.partition(known * len(edges)))
    uncertainty = rerun.Points3D.columns(
        positions=points.reshape(-1, 3),
        radii=span.sigma[known].reshape(-1) / 1000,
        colors=np.tile([*person_colour(track.person), SIGMA_ALPHA], (len(points) * joints, 1)),
    )
    stream.send_columns(f"{path}/uncertainty", indexes=[index], columns=uncertainty.partition(known * joints))
    if track.recording.table.hand_scores is not None:
        _log_hands(stream, track, span, rerun)


def _log_hands(stream: Any, track: Track, span: TrackSpan, rerun: Any) -> None:
    """Log the bones of detected hands; clear them in frames without hands."""
    hands = track.hands(span.start + np.arange(len(span.times))).points
    points: F32 = track.space.to_table(hands).astype(np.float32)
    seen = np.isfinite(points).all(axis=(2, 3))
    colours = np.repeat([SIDE_COLOURS[SIDES[side]] for side in np.nonzero(seen)[1]], len(BONES), axis=0)
    fingers = rerun.LineStrips3D.columns(
        strips=points[seen][:, np.array(BONES)].reshape(-1, 2, 3),
        colors=colours.reshape(-1, 3).astype(np.uint8),
        radii=np.full(int(seen.sum()) * len(BONES), FINGER_RADIUS_M),
    )
    index = rerun.TimeColumn(TIMELINE, duration=span.times)
    path = f"world/person{track.person}/hands"
    stream.send_columns(path, indexes=[index], columns=fingers.partition(seen.sum(axis=1) * len(BONES)))


def _limbs(skeleton: Skeleton) -> tuple[I64, np.ndarray]:
    """Return the joint pairs (E, 2) and colours (E, 3) of the E limbs."""
    colours = [SIDE_COLOURS[edge_side(skeleton, a, b)] for a, b in skeleton.edges]
    return np.array(skeleton.edges, np.int64), np.array(colours, np.uint8)


def _path(number: int) -> str:
    """Return the entity path of a camera; number 2 is the second camera."""
    return "world/camera" if number == 1 else f"world/camera{number}"


def _log_images(stream: Any, recording: Selection, rerun: Any) -> None:
    """Log the images of the recording's video, and of the other cameras if their files are available."""
    first, last = float(recording.times[0]), float(recording.times[-1])
    cameras = result_cameras(recording.table.run)
    chosen = None if recording.table.run is None else recording.table.run.stream
    videos = [recording.video, *(camera.file for camera in cameras[1:])]
    for number, video in enumerate(videos, 1):
        if video is None:
            continue
        clock = cameras[number - 1] if cameras else None
        start, end = (first, last) if clock is None else (clock.own_time(first), clock.own_time(last))
        if end <= max(start, 0):  # the video has no frame in this part: its clock differs
            continue
        from pose.video import open_source  # loads PyAV, which other formats do without

        with open_source(str(video), start=max(start, 0.0), end=np.nextafter(end, np.inf), stream=chosen) as source:
            for frame in source:
                time = frame.time if clock is None else clock.result_time(frame.time)
                stream.set_time(TIMELINE, duration=time)
                stream.log(f"{_path(number)}/picture", rerun.Image(frame.image).compress(jpeg_quality=JPEG_QUALITY))


FORMAT = SceneFormat(".rrd", write, extra="rerun", modules=("rerun",), options=("video",))
