"""Small rigged characters as GLB files, with the bone names, axes, units and rest pose of other programs."""

import json
import struct

import numpy as np

# Bones by our names: parent, and start in metres in a T-pose that faces +z (x to the left).
BONES = {
    "Hips": (None, (0, 1.0, 0)), "Spine": ("Hips", (0, 1.1, 0)), "Spine1": ("Spine", (0, 1.22, -0.01)),
    "Spine2": ("Spine1", (0, 1.34, -0.01)), "Neck": ("Spine2", (0, 1.5, -0.01)), "Head": ("Neck", (0, 1.58, 0.02)),
    "LeftShoulder": ("Spine2", (0.03, 1.45, 0)), "LeftArm": ("LeftShoulder", (0.17, 1.44, 0)),
    "LeftForeArm": ("LeftArm", (0.44, 1.44, -0.01)), "LeftHand": ("LeftForeArm", (0.68, 1.44, 0.005)),
    "LeftHandIndex1": ("LeftHand", (0.77, 1.44, 0.035)), "LeftHandIndex2": ("LeftHandIndex1", (0.8, 1.44, 0.037)),
    "LeftHandIndex3": ("LeftHandIndex2", (0.82, 1.44, 0.038)), "LeftHandMiddle1": ("LeftHand", (0.775, 1.44, 0.01)),
    "LeftHandMiddle2": ("LeftHandMiddle1", (0.81, 1.44, 0.01)), "LeftHandPinky1": ("LeftHand", (0.765, 1.44, -0.035)),
    "LeftUpLeg": ("Hips", (0.1, 0.95, 0)), "LeftLeg": ("LeftUpLeg", (0.1, 0.52, 0.005)),
    "LeftFoot": ("LeftLeg", (0.1, 0.09, -0.02)), "LeftToeBase": ("LeftFoot", (0.12, 0.02, 0.11)),
}  # fmt: skip
for _name, (_parent, (_x, _y, _z)) in list(BONES.items()):
    if _name.startswith("Left"):
        BONES[_name.replace("Left", "Right")] = (_parent.replace("Left", "Right"), (-_x, _y, _z))


def turn(axis, degrees):
    """The rotation matrix (3, 3) about an axis."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(np.radians(degrees)) * cross + (1 - np.cos(np.radians(degrees))) * cross @ cross


def quaternion(matrix):
    """x, y, z, w of a rotation matrix, by its eigenvector."""
    values, vectors = np.linalg.eig(matrix)
    axis = np.real(vectors[:, np.argmin(abs(values - 1))])
    skew = np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
    angle = np.arctan2(np.dot(skew, axis) / 2, (np.trace(matrix) - 1) / 2)
    return [*(np.sin(angle / 2) * axis).tolist(), float(np.cos(angle / 2))]


def rigged(
    path, names, *, a_pose=0.0, axes=True, unit=1.0, size=1.0, facing=0.0, vrm=None, soles=True, posed=False, morphs=()
):
    """Write a character.

    Args:
        path: The file.
        names: Name in the file of each bone, by our name; bones without one are left out.
        a_pose: Degrees of the arms below the horizontal in the rest pose.
        axes: Whether bones have axes of their own, else those of the file.
        unit: Units of the bones per metre, which the node above them undoes by its scale.
        size: Size relative to 1.
        facing: Degrees by which the character is turned about the vertical.
        vrm: 0 or 1, the version of the extension that names the bones.
        soles: Whether the file has a mesh, of vertices below the feet.
        posed: Whether the nodes are in another pose than the skin.
        morphs: Names of morph targets of the mesh of the soles, whose weights are 0.5 at rest.
    """
    places = {name: size * np.array(place, float) for name, (_, place) in BONES.items()}
    for side, sign in (("Left", -1), ("Right", 1)):
        lowered, pivot = turn((0, 0, 1), sign * a_pose), places[f"{side}Arm"].copy()
        for name in BONES:
            if name.startswith((f"{side}Arm", f"{side}ForeArm", f"{side}Hand")):
                places[name] = pivot + lowered @ (places[name] - pivot)
    around = turn((0, 1, 0), facing)
    kept = [name for name in BONES if name in names]
    rng = np.random.default_rng(1)
    rest = {name: turn(rng.normal(size=3), rng.uniform(0, 180)) if axes else np.eye(3) for name in kept}
    places = {name: unit * (around @ places[name]) for name in kept}
    nodes = [{"name": "Armature", "scale": [1 / unit] * 3, "children": [1]}]
    number = {name: at for at, name in enumerate(kept, start=1)}
    matrices = []
    for name in kept:
        above = BONES[name][0]
        while above is not None and above not in kept:
            above = BONES[above][0]
        back = np.eye(3) if above is None else rest[above].T
        start = places[name] - (0 if above is None else places[above])
        local = back @ rest[name] @ (turn((1, 2, 3), 20) if posed and name != "Hips" else np.eye(3))
        nodes.append({"name": names[name], "translation": (back @ start).tolist(), "rotation": quaternion(local)})
        children = [number[child] for child in kept if _above(child, kept) == name]
        if children:
            nodes[-1]["children"] = children
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = rest[name].T, -rest[name].T @ places[name]
        matrices.append(matrix.T)
    binary, views, accessors = b"", [], []

    def add(values, kind, component, **more):
        nonlocal binary
        content = values.tobytes()
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(content)})
        accessors.append({"bufferView": len(views) - 1, "componentType": component, "count": len(values),
                          "type": kind, **more})  # fmt: skip
        binary += content + b"\0" * (-len(content) % 4)
        return len(accessors) - 1

    document = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes}
    document["skins"] = [{"joints": list(number.values()), "skeleton": 1,
                          "inverseBindMatrices": add(np.array(matrices, "<f4"), "MAT4", 5126)}]  # fmt: skip
    if soles:
        points, slots = [], []
        for side, sign in (("Left", 1), ("Right", -1)):
            for x, z in ((0.06, -0.08), (0.14, -0.08), (0.08, 0.16), (0.16, 0.16)):
                points.append(unit * (around @ (size * np.array([sign * x, 0.0, z]))))
                slots.append([number[f"{side}Foot"] - 1, 0, 0, 0])
        points = np.array(points, "<f4")
        extent = {"min": points.min(axis=0).tolist(), "max": points.max(axis=0).tolist()}
        weights = np.tile(np.array([1, 0, 0, 0], "<f4"), (8, 1))
        attributes = {"POSITION": add(points, "VEC3", 5126, **extent),
                      "JOINTS_0": add(np.array(slots, "u1"), "VEC4", 5121),
                      "WEIGHTS_0": add(weights, "VEC4", 5126)}  # fmt: skip
        faces = add(np.array([0, 1, 2, 1, 2, 3, 4, 5, 6, 5, 6, 7], "<u2"), "SCALAR", 5123)
        document["meshes"] = [{"primitives": [{"attributes": attributes, "indices": faces}]}]
        if morphs:
            document["meshes"][0]["primitives"][0]["targets"] = [{"POSITION": attributes["POSITION"]}] * len(morphs)
            document["meshes"][0] |= {"weights": [0.5] * len(morphs), "extras": {"targetNames": list(morphs)}}
        nodes.append({"name": "body", "mesh": 0, "skin": 0})
        document["scenes"][0]["nodes"].append(len(nodes) - 1)
    if vrm is not None:
        named = {key: number[own] for key, own in VRM_NAMES.items() if own in number}
        if vrm == 1:
            bones = {key: {"node": node} for key, node in named.items()}
            meta = {"name": "rig", "authors": ["test"], "licenseUrl": "https://vrm.dev/licenses/1.0/"}
            own = {"specVersion": "1.0", "meta": meta, "humanoid": {"humanBones": bones}}
            document["extensions"] = {"VRMC_vrm": own}
        else:
            bones = [{"bone": key, "node": node} for key, node in named.items()]
            document["extensions"] = {"VRM": {"humanoid": {"humanBones": bones}}}
        document["extensionsUsed"] = list(document["extensions"])
    document |= {"bufferViews": views, "accessors": accessors, "buffers": [{"byteLength": len(binary)}]}
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
    return path


def _above(name, kept):
    above = BONES[name][0]
    while above is not None and above not in kept:
        above = BONES[above][0]
    return above


VRM_NAMES = {
    "hips": "Hips", "spine": "Spine", "chest": "Spine1", "upperChest": "Spine2", "neck": "Neck", "head": "Head",
    **{f"{side.lower()}{key}": f"{side}{own}" for side in ("Left", "Right") for key, own in (
        ("Shoulder", "Shoulder"), ("UpperArm", "Arm"), ("LowerArm", "ForeArm"), ("Hand", "Hand"),
        ("UpperLeg", "UpLeg"), ("LowerLeg", "Leg"), ("Foot", "Foot"), ("Toes", "ToeBase"),
        ("IndexProximal", "HandIndex1"), ("IndexIntermediate", "HandIndex2"), ("IndexDistal", "HandIndex3"),
    )},
}  # fmt: skip
