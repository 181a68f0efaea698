"""Morph targets and weights of faces in GLB, with the names of ARKit's blend shapes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pose.body.face_units import expressions, face_units
from pose.body.tracks import Track
from pose.export.gltf import Animation, Buffer
from pose.structures.types import F32
from pose.utils.json_values import Json

_SUFFIXES = {"left": "l", "right": "r"}  # some programs write eyeBlink_L


class FaceMotion:
    """The coefficients of a person's face over time."""

    def __init__(self, track: Track, start: float) -> None:
        """Compute the coefficients; times are relative to `start` (s)."""
        found = list(expressions(track.recording, track.person))
        time = track.recording.table.time
        self.times = np.concatenate([time[rows] - start for rows, _ in found] or [np.zeros(0)]).astype(np.float32)
        self.weights: F32 = np.nan_to_num(
            np.concatenate([values for _, values in found] or [np.zeros((0, len(face_units().names)))])
        ).astype(np.float32)  # (T, 52); 0 for units that face points do not show

    def __len__(self) -> int:
        return len(self.times)

    def move(
        self, animation: Animation, node: int, buffer: Buffer, columns: Sequence[int], rest: Sequence[float]
    ) -> None:
        """Add a channel for the weights of a node's mesh: for each target our column, or -1 to keep `rest`."""
        values = np.tile(np.asarray(rest, np.float32), (len(self), 1))
        known = [at for at, column in enumerate(columns) if column >= 0]
        values[:, known] = self.weights[:, [columns[at] for at in known]]
        times = buffer.keep_with_range(self.times, "SCALAR")
        animation.move(node, "weights", times, buffer.keep(values.reshape(-1), "SCALAR"))


def add_targets(buffer: Buffer, mesh: dict[str, Json], count: int) -> None:
    """Add the 52 targets to a mesh of the body model's `count` vertices."""
    units = face_units()
    targets: list[Json] = []
    for unit in range(len(units.names)):
        rows, moved = units.moved(unit)
        targets.append({"POSITION": buffer.keep_sparse(count, rows, moved.astype(np.float32))})
    primitives: Any = mesh["primitives"]
    primitives[0]["targets"] = targets
    mesh["weights"] = [0.0] * len(targets)
    mesh["extras"] = {"targetNames": list(units.names)}


def columns_of(names: Sequence[object]) -> list[int]:
    """Return for each morph target of a user's mesh the number of the face unit with its name, or -1."""
    known: dict[str, int] = {}
    for at, name in enumerate(face_units().names):
        known[name.lower()] = at
        for side, letter in _SUFFIXES.items():
            if name.lower().endswith(side):
                known[name.lower().removesuffix(side) + letter] = at
    plain = (str(name).rpartition(".")[2].lower().replace("_", "").replace(" ", "") for name in names)
    return [known.get(name, -1) for name in plain]


def move_faces(face: FaceMotion, document: dict[str, Any], first: int, animation: Animation, buffer: Buffer) -> int:
    """Move the morph targets of a user's character, whose nodes begin at `first`; return how many are moved."""
    if not len(face):
        return 0
    count = 0
    for at, node in enumerate(document["nodes"]):
        mesh = document.get("meshes", [])[node["mesh"]] if "mesh" in node else {}
        primitives = mesh.get("primitives") or [{}]
        targets = len(primitives[0].get("targets", []))
        names = mesh.get("extras", {}).get("targetNames") or primitives[0].get("extras", {}).get("targetNames") or []
        columns = columns_of(names[:targets])
        if len(columns) == targets and any(column >= 0 for column in columns):
            rest = node.get("weights") or mesh.get("weights") or [0.0] * targets
            face.move(animation, first + at, buffer, columns, rest)
            count += sum(column >= 0 for column in columns)
    return count
