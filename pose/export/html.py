"""A report as one HTML file that opens from disk, without network or server.

The 3D scene is that of the live page (pose/live/web/static); report.js and report.css are beside it. A small video is
embedded, a larger one is played from the folder of the file.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from pose.body.character.look import CharacterMotion, character_of, moving_bones
from pose.body.character.model import body_model
from pose.body.character.rest import Character
from pose.body.joint_angles import NAMES, joint_angles
from pose.body.selection import without_world
from pose.body.space import CAMERA_SPACE, Space, level_space
from pose.body.timeline import Timeline, stretches, thinned
from pose.body.tracks import Selection, Track
from pose.export.format import MAX_PEOPLE, Notes, SceneFormat, people_with_most_frames
from pose.lifting.repair.person import LIMB_NAMES
from pose.results.cameras import result_cameras, result_title
from pose.structures.colours import drawing_settings
from pose.structures.defaults import ANALYSIS_PAGE
from pose.structures.skeletons import LIMBS
from pose.utils.json_values import Json
from pose.utils.shown import shown_in_html
from pose.utils.whole_file import whole_file
from pose.view.camera_plan import cameras_section
from pose.world.frame import LEVEL_UP

MAX_BODIES = 20  # maximum per page; the first people on the page have a body
_REST_UNIT_M = 1e-4  # m; unit of vertices and bones in the rest pose
QUATERNION_SCALE = 32767  # scale factor of x, y and z of a quaternion, whose sign is chosen so that w >= 0


class PageBody:
    """The body mesh of a person on the page: its rest pose and its motion."""

    def __init__(self, track: Track, space: Space) -> None:
        self._character: Character = character_of(track, "light")
        self._motion = CharacterMotion(track, self._character, space)
        self._moving = moving_bones(self._character.model, fingers=self._motion.hands)

    def rest(self) -> NDArray[np.float64]:
        """Return the rest pose (B + V, 3) in tenths of a millimetre: start points of the B bones, then V vertices."""
        return rest_numbers(self._character)

    def frames(self) -> Iterator[NDArray[np.float64]]:
        """Yield poses (n, 3 + 3 M) of each portion: root in mm, then x, y, z of M scaled quaternions; NaN in gaps."""
        for span, motion in self._motion.spans():
            rows = pose_numbers(motion.root, motion.quaternions[:, self._moving])
            rows[~span.known] = np.nan
            yield rows

    @property
    def moving(self) -> list[int]:
        """Indices of the bones that rotate."""
        return self._moving


def rest_numbers(character: Character) -> NDArray[np.float64]:
    """Return the rest pose (B + V, 3) in tenths of a millimetre: start points of the B bones, then V vertices."""
    return np.concatenate([character.heads, character.vertices]) / _REST_UNIT_M


def pose_numbers(root: NDArray[np.float64], quaternions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Encode poses (n, 3 + 3 M) for the page: the root in mm, then x, y, z of quaternions * `QUATERNION_SCALE`."""
    quaternions = np.where(quaternions[..., :1] < 0, -quaternions, quaternions)[..., 1:] * QUATERNION_SCALE
    return np.concatenate([1000 * root, quaternions.reshape(len(quaternions), -1)], axis=1)


def mesh_arrays() -> dict[str, NDArray[np.generic]]:
    """Return `triangles` (F, 3), and `bones` (V, 4) of each vertex with their `weights` times 65535, of all bodies."""
    model = body_model("light")
    return {
        "triangles": model.faces.astype("<u2"),
        "bones": model.bones,
        "weights": np.rint(model.weights * 65535).astype("<u2"),
    }


def mesh_metadata() -> dict[str, Json]:
    """Return the `parents` of the bones, -1 for the root, the `unit` of the rest pose in m, and the axes' `turn`."""
    return {"parents": body_model("light").parents.tolist(), "unit": _REST_UNIT_M, "turn": QUATERNION_SCALE}


def hand_rows(track: Track, space: Space) -> Iterator[NDArray[np.float64]]:
    """Yield hand points (n, 126) mm (2 hands x 21 x 3, z up) of each portion of a track; NaN if undetected."""
    for span in track.spans():
        at = span.start + np.arange(len(span.times))
        points = space.to_file(track.hands(at).points)
        points = np.stack([points[..., 0], -points[..., 2], points[..., 1]], axis=-1)
        yield 1000 * points.reshape(len(points), -1)


MAX_FRAMES = 20_000  # maximum per page; longer results are subsampled evenly
MAX_EMBEDDED_BYTES = 8_000_000  # maximum size of an embedded video, bytes
OVERLAY = "overlay.mp4"  # video that pose-run writes beside the report
_MODULES = ("paint.js", "turntable.js", "body.js", "scene.js", "marks.js", "report.js")
_MISSING = -32768
_MAX_FLOOR_POSES = 32_768  # maximum number of poses from which the floor is computed
MOVING_NOTE = "camera frame, lowest feet at 0; not levelled, because the camera's motion is unknown"
_SPEED_WINDOW_S = 0.2  # window for the speed of the pelvis


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write a report on the people with the ids `people` as HTML, and return notes for the export summary."""
    timeline, space = _thinned(recording.timeline), _space(recording, people)
    shown, fewer = people_with_most_frames(recording, people, MAX_PEOPLE)
    tracks = [track for person in shown if (track := recording.track(person, timeline)) is not None]
    video = _video(recording, target)
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_head(recording, linked=(target.parent / ANALYSIS_PAGE).is_file()))
        file.write('<script type="application/json" id="facts">')
        file.write(_inline(_metadata(recording, timeline, tracks, space, len(people) - len(shown))))
        file.write("</script>\n")
        bodies = {track.person: PageBody(track, space) for track in tracks[:MAX_BODIES]}
        file.write(f'<script type="application/json" id="mesh">{_inline(_mesh(bodies))}</script>\n')
        for track in tracks:
            _write_person(file, track, space, bodies.get(track.person))
        if video is not None:
            _write_video(file, video, target, _offset(recording, video))
        if not recording.rescaled:
            file.writelines(cameras_section(recording.table))
        file.write(_scripts())
    video_note = "contains the video" if video and _is_small(video) else f"plays {video.name}" if video else "no video"
    thinning_note = (
        [f"{len(timeline.times)} of {len(recording.timeline.times)} frames"]
        if timeline is not recording.timeline
        else []
    )
    return [video_note, *thinning_note, *fewer]


def _space(recording: Selection, people: list[int]) -> Space:
    """Return the world, or with uncompensated camera motion the camera frame with the lowest feet at height 0."""
    if not without_world(recording.table):
        return recording.world
    rows = [thinned(recording.rows_of(person), _MAX_FLOOR_POSES // len(people)) for person in people]
    joints, root = recording.poses(np.concatenate([np.zeros(0, np.int64), *rows]), in_first_camera=False)
    known = np.isfinite(root).all(axis=1) & np.isfinite(joints).all(axis=(1, 2))
    floor = level_space([(joints[known], root[known])], LEVEL_UP).floor
    return replace(CAMERA_SPACE, note=MOVING_NOTE, floor=floor)


def _thinned(timeline: Timeline) -> Timeline:
    step = -(-len(timeline.times) // MAX_FRAMES)
    return timeline if step == 1 else Timeline(timeline.times[::step], None, True)


def _metadata(
    recording: Selection, timeline: Timeline, tracks: list[Track], space: Space, left_out: int
) -> dict[str, Any]:
    """Return the metadata of the page."""
    run = {} if recording.table.run is None else recording.table.run.to_dict()
    return {
        "name": recording.name,
        "times": _packed(timeline.times.astype("<f8")),
        "drawing": drawing_settings(),
        "angles": list(NAMES),
        "space": space.note,
        "people": [_person_metadata(recording, track) for track in tracks],
        "leftOut": left_out,
        "run": {key: run[key] for key in ("created_by", "source", "camera", "models", "settings") if run},
        "complete": recording.table.complete,
    }


def _person_metadata(recording: Selection, track: Track) -> dict[str, Any]:
    """Return the metadata of a person: detection, frames, and marks in times and frames of the whole recording."""
    full_track = recording.track(track.person, recording.timeline)
    assert full_track is not None, "a person on a subsampled timeline is also on the full one"
    swapped = dict(zip(LIMB_NAMES, full_track.swapped.T, strict=True))
    contradicted = {f"inconsistent_{limb}": flags for limb, flags in zip(LIMBS, full_track.inconsistent.T, strict=True)}
    marks = {"missing": ~full_track.known, "filled": full_track.filled} | swapped | contradicted
    return {
        "id": track.person,
        "doubtful": track.person in recording.table.doubtful_ids,
        "first": track.first,
        "count": len(track),
        "frames": int((full_track.known & ~full_track.filled).sum()),
        "marks": {
            name: {"frames": int(flags.sum()), "spans": _seconds(flags, full_track)} for name, flags in marks.items()
        },
    }


def _seconds(flags: NDArray[np.bool_], track: Track) -> list[list[float]]:
    """Return [first, end] s of every run of True in `flags` (T,). A frame lasts until the next one begins."""
    ends = np.append(track.times[1:], track.times[-1])
    return [[round(float(track.times[a]), 4), round(float(ends[b]), 4)] for a, b in stretches(flags)]


def _mesh(bodies: dict[int, PageBody]) -> dict[str, Any]:
    """Return the mesh data that all bodies on the page share."""
    arrays = {name: _packed(values) for name, values in mesh_arrays().items()} if bodies else {}
    return mesh_metadata() | arrays | {"moving": {person: body.moving for person, body in bodies.items()}}


def _write_person(file: IO[str], track: Track, space: Space, body: PageBody | None) -> None:
    """Write the person's frames in portions, as one script element per quantity."""
    columns: dict[str, list[str]] = {name: [] for name in ("stage", "sigma", "angles", "deviations", "lines")}
    for part in _portions(track, space):
        for name, values in part.items():
            columns[name].append(_packed(values))
    if track.recording.table.hand_scores is not None:
        columns["hands"] = [_packed(_short(rows)) for rows in hand_rows(track, space)]
    if body is not None:
        columns["rest"] = [_packed(_short(body.rest()))]
        columns["turns"] = [_packed(_short(rows)) for rows in body.frames()]
    for name, parts in columns.items():
        # Portions are encoded separately, so that their lengths need not be multiples of three bytes.
        file.write(f'<script type="text/plain" id="p{track.person}-{name}">{" ".join(parts)}</script>\n')


def _portions(track: Track, space: Space) -> Iterator[dict[str, NDArray[np.generic]]]:
    """Yield the quantities of the page as int16 arrays, n frames at a time. Unknown values are `_MISSING`."""
    # `stage`: (n, 51) joints in mm, x right, y away from the camera, z up; `sigma`: (n, 17) mm; `angles`, `deviations`:
    # (n, 16) tenths of a degree; `lines`: (n, 4) speed of the pelvis in mm/s, its height in mm, and in thousandths the
    # mean 2D score and the fraction of joints not detected in 2D.
    roots = np.concatenate([space.to_file(span.joints[:, 0]) for span in track.spans()])
    speed = _speed(track.times, roots)
    for span in track.spans():
        joints = space.to_file(span.joints)
        angles = joint_angles(span.joints, span.sigma, space.up)
        at = span.start + np.arange(len(span.times))
        unseen = np.where(span.known, (span.score == 0).mean(axis=1), np.nan)
        score = np.where(span.known, span.score.mean(axis=1), np.nan)
        lines = np.stack([1000 * speed[at], 1000 * roots[at, 1], 1000 * score, 1000 * unseen], axis=1)
        stage = np.stack([joints[..., 0], -joints[..., 2], joints[..., 1]], axis=-1)
        yield {
            "stage": _short(1000 * stage.reshape(len(stage), -1)),
            "sigma": _short(span.sigma),
            "angles": _short(10 * angles.degrees),
            "deviations": _short(10 * angles.deviations),
            "lines": _short(lines),
        }


def _speed(times: NDArray[np.float64], roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the speed (T,) m/s over `_SPEED_WINDOW_S` around each frame; NaN if the person is missing at an end."""
    last = len(times) - 1
    earlier = np.searchsorted(times, times - _SPEED_WINDOW_S / 2 - 1e-6)
    later = np.minimum(np.searchsorted(times, times + _SPEED_WINDOW_S / 2 + 1e-6, side="right") - 1, last)
    later = np.where(later == earlier, np.minimum(later + 1, last), later)
    elapsed = times[later] - times[earlier]
    distance = np.linalg.norm(roots[later] - roots[earlier], axis=1)
    return np.where(elapsed > 0, distance / np.maximum(elapsed, 1e-9), np.nan)


def _short(values: NDArray[np.float64]) -> NDArray[np.int16]:
    clipped = np.clip(np.round(values), _MISSING + 1, -_MISSING - 1)
    return np.where(np.isfinite(values), clipped, _MISSING).astype("<i2")


def _packed(values: NDArray[np.generic]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _video(recording: Selection, target: Path) -> Path | None:
    beside = target.parent / OVERLAY
    return beside if beside.is_file() else recording.video


def _is_small(video: Path) -> bool:
    return video.stat().st_size <= MAX_EMBEDDED_BYTES


def _offset(recording: Selection, video: Path) -> float:
    """Return the time in the result at which a video starts, s."""
    if video.name == OVERLAY:
        return float(recording.times[0])
    cameras = result_cameras(recording.table.run)
    return cameras[0].offset if cameras else 0.0


def _write_video(file: IO[str], video: Path, target: Path, offset: float) -> None:
    if _is_small(video):
        kind = {".mp4": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime"}.get(
            video.suffix.lower(), "video/mp4"
        )
        source = f"data:{kind};base64,{base64.b64encode(video.read_bytes()).decode()}"
    else:
        source = quote(os.path.relpath(video, target.parent))
    file.write(
        f'<script type="application/json" id="video-facts">{_inline({"source": source, "offset": offset})}</script>\n'
    )


def _inline(value: Any) -> str:
    """Return JSON in which no character sequence can end the enclosing HTML element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _static(name: str) -> str:
    return (files("pose.live.web") / "static" / name).read_text(encoding="utf-8")


def _head(recording: Selection, *, linked: bool) -> str:
    title = result_title(recording.table.run, recording.name)
    link = f'<p><a href="{ANALYSIS_PAGE}">Movement analysis</a></p>' if linked else ""
    texts = {"title": shown_in_html(title), "link": link, "style": f"{_static('style.css')}\n{_static('report.css')}"}
    # All placeholders are replaced in one pass, so that placeholders in inserted text are not expanded.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: texts[found[1]], _static("report.html"))


def _scripts() -> str:
    """Return the page's scripts as data URLs in an import map, because browsers do not load modules from disk."""
    imports = {f"pose/{name}": f"data:text/javascript;base64,{_packed_text(_module(name))}" for name in _MODULES}
    start = '<script type="module">import { start } from "pose/report.js"; start();</script>'
    return f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n{start}\n</body>\n</html>\n'


def _module(name: str) -> str:
    return re.sub(r'from "\./([\w.]+)"', r'from "pose/\1"', _static(name))


def _packed_text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMAT = SceneFormat(".html", write, options=("video",))
