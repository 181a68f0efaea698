"""A Rerun recording: picture, 2D joints, 3D joints and bones, and a sphere of the size of each joint's uncertainty."""

from pathlib import Path
from typing import Any

import numpy as np

from pose.export.format import Notes, SceneFormat
from pose.export.many import MOST_PEOPLE, seen_most
from pose.export.timeline import Span
from pose.export.tracks import CHUNK, Recording, Track
from pose.skeletons import H36M17, Skeleton
from pose.system.whole_file import whole_file
from pose.types import F32, I64
from pose.view.colours import SIDE_COLOURS, edge_side, person_colour

TIMELINE = "video"
JPEG_QUALITY = 75
LIMB_RADIUS = 0.02  # m
HAZE = 40  # alpha of the spheres of uncertainty


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    import rerun

    shown, fewer = seen_most(recording, people, MOST_PEOPLE)
    with whole_file(target) as hidden:
        stream = rerun.RecordingStream("pose-convert")
        stream.save(str(hidden))
        note = _place_camera(stream, recording, rerun)
        for person in shown:
            _log_2d(stream, recording, person, rerun)
            track = recording.track(person, recording.timeline)
            if track is not None:
                for span in track.spans():
                    _log_3d(stream, track, span, rerun)
        if recording.video is not None:
            _log_pictures(stream, recording, rerun)
        stream.flush()
        stream.disconnect()
    pictures = "with" if recording.video is not None else "without (give --video)"
    return [f"metres, {note}; {pictures} pictures", *fewer]


def _place_camera(stream: Any, recording: Recording, rerun: Any) -> str:
    """The world is the recording's space; the camera stands where its axes say."""
    table, space = recording.table, recording.space
    if space.name == "camera":
        stream.log("world", rerun.ViewCoordinates.RDF, static=True)
    else:
        stream.log("world", rerun.ViewCoordinates.RIGHT_HAND_Y_UP, static=True)
        place = rerun.Transform3D(translation=[0, -space.floor, 0], mat3x3=space.turn)
        stream.log("world/camera", place, static=True)
    if (camera := table.camera) is not None:
        pinhole = rerun.Pinhole(
            image_from_camera=camera.matrix, resolution=camera.size, camera_xyz=rerun.ViewCoordinates.RDF
        )
        stream.log("world/camera", pinhole, static=True)
    return space.note if space.name != "camera" else "x right, y down, z forward"


def _log_2d(stream: Any, recording: Recording, person: int, rerun: Any) -> None:
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
    stream: Any, path: str, recording: Recording, rows: I64, columns: Any, lengths: np.ndarray, rerun: Any
) -> None:
    times = recording.times[np.searchsorted(recording.frames, recording.table.frame_index[rows])]
    index = rerun.TimeColumn(TIMELINE, duration=times)
    stream.send_columns(path, indexes=[index], columns=columns.partition(lengths))


def _log_3d(stream: Any, track: Track, span: Span, rerun: Any) -> None:
    """A frame without the person clears it."""
    known, joints = span.known, len(H36M17)
    places: F32 = track.space.to_table(span.places[known]).astype(np.float32)
    index = rerun.TimeColumn(TIMELINE, duration=span.times)
    edges, colours = _limbs(H36M17)
    path = f"world/person{track.person}"
    bones = rerun.LineStrips3D.columns(
        strips=places[:, edges].reshape(-1, 2, 3),
        colors=np.tile(colours, (len(places), 1)),
        radii=np.full(len(places) * len(edges), LIMB_RADIUS),
    )
    stream.send_columns(f"{path}/bones", indexes=[index], columns=bones.partition(known * len(edges)))
    haze = rerun.Points3D.columns(
        positions=places.reshape(-1, 3),
        radii=span.sigma[known].reshape(-1) / 1000,
        colors=np.tile([*person_colour(track.person), HAZE], (len(places) * joints, 1)),
    )
    stream.send_columns(f"{path}/uncertainty", indexes=[index], columns=haze.partition(known * joints))


def _limbs(skeleton: Skeleton) -> tuple[I64, np.ndarray]:
    """(E, 2) joints and (E, 3) colours."""
    colours = [SIDE_COLOURS[edge_side(skeleton, a, b)] for a, b in skeleton.edges]
    return np.array(skeleton.edges, np.int64), np.array(colours, np.uint8)


def _log_pictures(stream: Any, recording: Recording, rerun: Any) -> None:
    from pose.video import open_source

    last = float(recording.times[-1])
    with open_source(str(recording.video), start=float(recording.times[0]), end=np.nextafter(last, np.inf)) as source:
        for frame in source:
            stream.set_time(TIMELINE, duration=frame.time)
            stream.log("world/camera/picture", rerun.Image(frame.image).compress(jpeg_quality=JPEG_QUALITY))


FORMAT = SceneFormat(".rrd", write, extra="rerun", modules=("rerun",))
