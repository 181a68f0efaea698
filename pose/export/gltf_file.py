"""A character in a GLB or VRM file of the user: its nodes, the rest pose of its skin, its bones and its soles."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from pose.body.character.bone_map import TABLE_NAMES, bones_by_name, bones_by_table, missing_bones, some_names
from pose.body.character.retarget import TargetRig
from pose.errors import PoseError
from pose.export.gltf import FLOAT, UINT8, UINT16, WIDTHS
from pose.structures import rotations
from pose.structures.types import F64, I64
from pose.utils.json_values import Json, strict_json
from pose.utils.shown import in_brief, shown
from pose.utils.whole_file import file_errors

MAX_BYTES = 1_000_000_000  # maximum size of a character's file
MAX_NODES = 20_000
_TYPES = {FLOAT: "<f4", UINT16: "<u2", UINT8: "u1"}
_MAX_SCALE_DIFFERENCE = 0.01  # relative difference of the scales of a bone along its axes
_FOOT_SHARE = 0.9  # minimum weight of foot and toes of the vertices of a sole
_OLD_THUMB = {"Proximal": "1", "Intermediate": "2", "Distal": "3"}  # VRM 0 has no metacarpal of the thumb


@dataclass(frozen=True, slots=True)
class RiggedFile:
    """A character that can be moved."""

    document: dict[str, Any]  # JSON chunk
    binary: bytes  # binary chunk, its length a multiple of 4
    rig: TargetRig
    source: str  # source of the bones, for notes


def read_character(path: Path, table: Path | None = None) -> RiggedFile:
    """Read a GLB or VRM character, with bone names by a JSON `table`; PoseError if bones are missing."""
    with file_errors(path):
        if path.stat().st_size > MAX_BYTES:
            raise PoseError(f"{path}: larger than {MAX_BYTES / 1e6:.0f} MB")
        content = path.read_bytes()
    try:
        document, binary = _chunks(content)
        return _rigged(document, binary, path, None if table is None else _table(table))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, struct.error) as error:
        raise PoseError(f"{path}: not a character in a GLB or VRM file ({in_brief(error)})") from error


def _table(path: Path) -> tuple[str, dict[str, Json]]:
    with file_errors(path):
        content = path.read_bytes()
    try:
        values = strict_json(content)
    except ValueError as error:
        raise PoseError(f"{path}: {error}") from error
    if not isinstance(values, dict):
        raise PoseError(f"{path}: expected an object with names of VRM 1.0 and of the character's bones")
    return str(path), values


def _chunks(content: bytes) -> tuple[dict[str, Any], bytes]:
    magic, version, _ = struct.unpack_from("<4sII", content)
    if magic != b"glTF" or version != 2:
        raise ValueError("no GLB of glTF 2")
    length, kind = struct.unpack_from("<I4s", content, 12)
    if kind != b"JSON" or 20 + length > len(content):
        raise ValueError("no JSON chunk")
    document = strict_json(content[20 : 20 + length])
    if not isinstance(document, dict):
        raise TypeError("expected an object")
    at, binary = 20 + length, b""
    if at + 8 <= len(content):
        size, kind = struct.unpack_from("<I4s", content, at)
        if kind == b"BIN\0":
            binary = content[at + 8 : at + 8 + size]
    return document, binary + b"\0" * (-len(binary) % 4)


def _rigged(
    document: dict[str, Any], binary: bytes, path: Path, table: tuple[str, dict[str, Json]] | None
) -> RiggedFile:
    nodes = document["nodes"]
    if not 0 < len(nodes) <= MAX_NODES:
        raise ValueError(f"{len(nodes)} nodes")
    names = [str(node.get("name", f"node {at}")) for at, node in enumerate(nodes)]
    parents, order = _tree(nodes)
    local = [_local(node) for node in nodes]
    translations, quaternions = np.array([each[0] for each in local]), np.array([each[1] for each in local])
    skins = document.get("skins", [])
    joints = list(dict.fromkeys(int(joint) for skin in skins for joint in skin["joints"]))
    among = [*joints, *(node for node in range(len(nodes)) if node not in set(joints))]
    bones, source = _bones(document, names, among, table)
    if absent := missing_bones(bones):
        raise PoseError(
            f"{path}: no bone found for {', '.join(absent[:4])}{', ...' if len(absent) > 4 else ''}; its bones are "
            f"{some_names([names[node] for node in among])}; name them with --bones FILE.json"
        )
    scales = _scales(local, names, parents, list(bones.values()), path)
    heads, rest = _rest_pose(document, binary, parents, order, translations, quaternions, scales, bones)
    soles = _soles(document, binary, bones, heads, parents)
    return RiggedFile(
        document, binary,
        TargetRig(parents, order, translations, quaternions, scales, heads, rest, bones, soles),
        f"{len(bones)} bones by {source}",
    )  # fmt: skip


def _tree(nodes: Sequence[dict[str, Any]]) -> tuple[I64, I64]:
    """Return the parents of all nodes, -1 for roots, and the nodes in an order with parents first."""
    parents = np.full(len(nodes), -1)
    for at, node in enumerate(nodes):
        for child in node.get("children", []):
            if isinstance(child, bool) or not 0 <= child < len(nodes) or parents[child] >= 0:
                raise ValueError(f"node {child} has two parents or does not exist")
            parents[child] = at
    order = np.flatnonzero(parents < 0).tolist()
    for at in order:  # grows
        order += nodes[at].get("children", [])
    if len(order) != len(nodes):
        raise ValueError("the nodes form a circle")
    return parents, np.array(order)


def _local(node: dict[str, Any]) -> tuple[F64, F64, F64]:
    """Return translation (3,), quaternion (4,) w first, and scale (3,) of a node."""
    if "matrix" in node:
        matrix = np.array(node["matrix"], np.float64).reshape(4, 4).T
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        return matrix[:3, 3], rotations.from_matrix(matrix[:3, :3] / np.maximum(scale, 1e-12)), scale
    x, y, z, w = np.array(node.get("rotation", (0, 0, 0, 1)), np.float64).reshape(4)
    translation = np.array(node.get("translation", (0, 0, 0)), np.float64).reshape(3)
    scale = np.array(node.get("scale", (1, 1, 1)), np.float64).reshape(3)
    if not np.isfinite([*translation, *scale, w, x, y, z]).all():
        raise ValueError("a node has no finite transform")
    return translation, rotations.unit(np.array([w, x, y, z])), scale


def _scales(
    local: list[tuple[F64, F64, F64]], names: list[str], parents: I64, bones: list[int], path: Path
) -> F64:  # fmt: skip
    """Return the scale of each node, and check that it is equal along all axes where the scale moves bones."""
    scales = np.array([each[2] for each in local])
    for node in bones:
        above = int(parents[node])
        while above >= 0:
            if (scales[above] <= 0).any() or np.ptp(scales[above]) > _MAX_SCALE_DIFFERENCE * scales[above].max():
                name = shown(names[above], 60)
                raise PoseError(f"{path}: {name} has unequal or negative scales; apply its scale first")
            above = int(parents[above])
    result: F64 = scales.mean(axis=1)
    return result


def _bones(
    document: dict[str, Any], names: list[str], among: list[int], table: tuple[str, dict[str, Json]] | None
) -> tuple[dict[str, int], str]:
    """Return the nodes of our bones, and where they come from: the user's table, VRM's own list, or the names."""
    found, source = bones_by_name(names, among), "name"
    extensions = document.get("extensions", {})
    if "VRMC_vrm" in extensions:
        humanoid = extensions["VRMC_vrm"]["humanoid"]["humanBones"]
        found, source = (
            {TABLE_NAMES[key]: int(bone["node"]) for key, bone in humanoid.items() if key in TABLE_NAMES},
            "VRM 1",
        )
    elif "VRM" in extensions:
        found, source = {}, "VRM 0"
        for bone in extensions["VRM"]["humanoid"]["humanBones"]:
            key = bone["bone"]
            for part, number in _OLD_THUMB.items():
                if key.endswith(f"Thumb{part}"):
                    found[f"{key.removesuffix(f'Thumb{part}').title()}HandThumb{number}"] = int(bone["node"])
            if "Thumb" not in key and key in TABLE_NAMES:
                found[TABLE_NAMES[key]] = int(bone["node"])
    if table is not None:
        found, source = found | bones_by_table(table[1], names, table[0]), "table and name"
    found = {own: node for own, node in found.items() if not own.startswith("Spine")}  # the hierarchy shows the spine
    if any(not 0 <= node < len(names) for node in found.values()):
        raise ValueError("a bone is not a node")
    return found, source


def _rest_pose(
    document: dict[str, Any], binary: bytes, parents: I64, order: I64, translations: F64, quaternions: F64, scales: F64,
    bones: dict[str, int],
) -> tuple[F64, F64]:  # fmt: skip
    """Return positions and rotations of all nodes in the pose in which the skin was bound, else as in the file."""
    heads, rest, size = translations.copy(), quaternions.copy(), scales.copy()
    for node in order.tolist():
        if (above := int(parents[node])) >= 0:
            heads[node] = heads[above] + size[above] * rotations.rotate(rest[above], translations[node])
            rest[node] = rotations.multiply(rest[above], quaternions[node])
            size[node] *= size[above]
    for skin in document.get("skins", []):
        where = {int(joint): at for at, joint in enumerate(skin["joints"])}
        if "inverseBindMatrices" not in skin or not set(bones.values()) <= set(where):
            continue
        matrices = _values(document, binary, skin["inverseBindMatrices"])
        if matrices is None or len(matrices) < len(where):
            continue
        bound = np.linalg.inv(matrices.reshape(-1, 4, 4).swapaxes(1, 2))
        if not np.isfinite(bound).all():
            continue
        for node, at in where.items():
            turn = bound[at, :3, :3]
            heads[node] = bound[at, :3, 3]
            rest[node] = rotations.from_matrix(turn / np.maximum(np.linalg.norm(turn, axis=0), 1e-12))
        break
    return heads, rest


def _soles(
    document: dict[str, Any], binary: bytes, bones: dict[str, int], heads: F64, parents: I64
) -> tuple[F64, F64]:  # fmt: skip
    """Return the vertices of both feet; if none is readable, a point below the ankle as low as the lowest bone."""
    found = []
    for side in ("Left", "Right"):
        foot, own = bones[f"{side}Foot"], set()
        for node in range(len(parents)):
            above = node
            while above >= 0 and above != foot:
                above = int(parents[above])
            own |= {node} if above == foot else set()
        vertices = [part for part in _vertices(document, binary, own) if len(part)]
        up = heads[bones["LeftArm"]] + heads[bones["RightArm"]] - heads[bones["LeftUpLeg"]] - heads[bones["RightUpLeg"]]
        up = up / max(float(np.linalg.norm(up)), 1e-9)
        ends = np.array([heads[node] for node in own])
        lowest = ends[(ends @ up).argmin()]
        found.append(
            np.concatenate(vertices) if vertices else heads[foot] + np.outer([(lowest - heads[foot]) @ up], up)
        )
    return found[0], found[1]


def _vertices(document: dict[str, Any], binary: bytes, bones: set[int]) -> list[F64]:
    """Return the vertices (V, 3) of all skinned meshes that move with `bones`, in the rest pose of the skin."""
    found = []
    for node in document["nodes"]:
        if "mesh" not in node or "skin" not in node:
            continue
        joints = document["skins"][node["skin"]]["joints"]
        own = np.array([joint in bones for joint in joints])
        for primitive in document["meshes"][node["mesh"]]["primitives"]:
            attributes = primitive["attributes"]
            read = [
                _values(document, binary, attributes[name]) if name in attributes else None
                for name in ("POSITION", "JOINTS_0", "WEIGHTS_0")
            ]
            if "extensions" in primitive and "KHR_draco_mesh_compression" in primitive["extensions"]:
                continue
            points, slots, weights = read
            if points is None or slots is None or weights is None:
                continue
            total = np.maximum(weights.sum(axis=1), 1e-9)
            share = (own[slots.astype(np.int64)] * weights).sum(axis=1) / total
            found.append(points[share > _FOOT_SHARE])
    return found


def _values(document: dict[str, Any], binary: bytes, accessor: int) -> F64 | None:
    """Return the values (N, width) of an accessor; None if it is sparse, compressed or not in the file."""
    entry = document["accessors"][accessor]
    if "bufferView" not in entry or "sparse" in entry or entry["componentType"] not in _TYPES:
        return None
    view = document["bufferViews"][entry["bufferView"]]
    if view["buffer"] != 0 or "uri" in document["buffers"][0] or "extensions" in view:
        return None
    kind, width, count = np.dtype(_TYPES[entry["componentType"]]), WIDTHS[entry["type"]], int(entry["count"])
    start, step = int(view.get("byteOffset", 0)) + int(entry.get("byteOffset", 0)), int(view.get("byteStride", 0))
    step = step or width * kind.itemsize
    if count < 1 or start < 0 or step < 1 or start + (count - 1) * step + width * kind.itemsize > len(binary):
        raise ValueError("an accessor ends beyond the data")
    with np.errstate(invalid="ignore"):  # numbers of damaged files may be signaling NaN
        values = np.ndarray((count, width), kind, binary, start, (step, kind.itemsize)).astype(np.float64)
    if entry.get("normalized", False) and kind.kind == "u":
        values /= np.iinfo(kind).max
    if not np.isfinite(values).all():
        raise ValueError("a value is not finite")
    return values


def person_copy(document: dict[str, Any], prefix: str, nodes: int, skins: int) -> tuple[list[Json], list[Json]]:
    """Return the nodes and skins of another copy of a character, whose indices begin at `nodes` and `skins`."""
    text = json.dumps({"nodes": document["nodes"], "skins": document.get("skins", [])})
    copy = cast("dict[str, list[dict[str, Any]]]", json.loads(text))
    for node in copy["nodes"]:
        node["name"] = f"{prefix}{node.get('name', '')}"
        if "children" in node:
            node["children"] = [nodes + child for child in node["children"]]
        if "skin" in node:
            node["skin"] += skins
        node.pop("extensions", None)
    for skin in copy["skins"]:
        skin["joints"] = [nodes + joint for joint in skin["joints"]]
        if "skeleton" in skin:
            skin["skeleton"] += nodes
    return cast("list[Json]", copy["nodes"]), cast("list[Json]", copy["skins"])
