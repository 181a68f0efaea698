"""GLB as pygltflib reads it: node places by forward kinematics, and what its cameras see."""

import numpy as np
import pytest

DTYPES = {5126: "<f4", 5123: "<u2", 5121: "u1"}
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}


class Glb:
    """A file as pygltflib reads it."""

    def __init__(self, path):
        pygltflib = pytest.importorskip("pygltflib")
        self.gltf = pygltflib.GLTF2().load(str(path))
        self.blob = self.gltf.binary_blob()

    def values(self, accessor):
        a = self.gltf.accessors[accessor]
        view = self.gltf.bufferViews[a.bufferView]
        assert (a.byteOffset or 0) == 0
        assert view.byteOffset % 4 == 0
        flat = np.frombuffer(self.blob, DTYPES[a.componentType], a.count * WIDTHS[a.type], view.byteOffset)
        values = flat.reshape(a.count, -1).astype(float)
        if a.min:
            np.testing.assert_allclose(values.min(axis=0), a.min)
            np.testing.assert_allclose(values.max(axis=0), a.max)
        return values

    def channels(self):
        found = {}
        animation = self.gltf.animations[0]
        if len(self.gltf.animations) > 1:
            each = [channel.target for one in self.gltf.animations[1:] for channel in one.channels]
            assert [channel.target for channel in animation.channels] == each, "the first plays everything"
        for channel in animation.channels:
            sampler = animation.samplers[channel.sampler]
            key = (channel.target.node, channel.target.path)
            assert key not in found, "each once"
            times, values = self.values(sampler.input)[:, 0], self.values(sampler.output)
            if channel.target.path == "weights":
                values = values.reshape(len(times), -1)
            assert len(times) == len(values)
            assert times[0] >= 0
            assert (np.diff(times) > 0).all()
            found[key] = times, values, sampler.interpolation
        return found

    def places(self, skin):
        """(T, 17, 3) by forward kinematics of the nodes, and the times."""
        channels, nodes = self.channels(), self.gltf.nodes
        joints = self.gltf.skins[skin].joints
        parents = {child: node for node in range(len(nodes)) for child in nodes[node].children or []}
        matrices, times = {}, None
        for joint in joints:
            still = (times, np.tile(nodes[joint].rotation, (len(times), 1)), "LINEAR") if times is not None else None
            times, turns, kind = channels.get((joint, "rotation"), still)
            assert kind == "LINEAR"
            np.testing.assert_allclose(np.linalg.norm(turns, axis=1), 1, atol=1e-5)
            assert ((turns[1:] * turns[:-1]).sum(axis=1) >= 0).all()
            local = np.tile(np.eye(4), (len(times), 1, 1))
            local[:, :3, :3] = turn_matrices(turns)
            root = (joint, "translation") in channels
            local[:, :3, 3] = channels[joint, "translation"][1] if root else nodes[joint].translation
            matrices[joint] = local if root else matrices[parents[joint]] @ local
        return np.stack([matrices[joint][:, :3, 3] for joint in joints], axis=1), times

    def bones(self, skin):
        """Unit vectors along the y axes of the joints at rest, and the mesh's rest pose moved by the skin, (V, 3)."""
        joints, nodes = self.gltf.skins[skin].joints, self.gltf.nodes
        parents = {child: node for node in range(len(nodes)) for child in nodes[node].children or []}
        matrices = {}
        for joint in joints:
            local = np.eye(4)
            local[:3, :3], local[:3, 3] = turn_matrices(np.array([nodes[joint].rotation]))[0], nodes[joint].translation
            matrices[joint] = matrices[parents[joint]] @ local if parents[joint] in matrices else local
        back = self.values(self.gltf.skins[skin].inverseBindMatrices).reshape(-1, 4, 4).swapaxes(1, 2)
        moved = [matrices[joint] @ inverse for joint, inverse in zip(joints, back, strict=True)]
        return {nodes[joint].name: matrices[joint][:3, 1] for joint in joints}, np.array(moved)

    def pixels(self, points, number=0, step=0):
        """(..., 2) px of points (..., 3) m that a camera sees, and its field of view, in one of its frames."""
        channels, camera = self.channels(), self.gltf.cameras[number]
        node = next(i for i, node in enumerate(self.gltf.nodes) if node.camera == number)
        own = self.gltf.nodes[node]
        turn, place, field = np.array([own.rotation]), np.array(own.translation), camera.perspective.yfov
        if (node, "rotation") in channels:
            turn = channels[node, "rotation"][1][[step]]
        if (node, "translation") in channels:
            place = channels[node, "translation"][1][step]
        for animation in self.gltf.animations:
            for channel in animation.channels:
                pointer = (channel.target.extensions or {}).get("KHR_animation_pointer", {}).get("pointer")
                if pointer == f"/cameras/{number}/perspective/yfov":
                    field = self.values(animation.samplers[channel.sampler].output)[step, 0]
        width, height = camera.extras["size"]
        seen = (points - place) @ turn_matrices(turn)[0]
        assert (seen[..., 2] < 0).all(), "before the camera"
        across = seen[..., 0] / -seen[..., 2] / (camera.perspective.aspectRatio * np.tan(field / 2))
        up = seen[..., 1] / -seen[..., 2] / np.tan(field / 2)
        return np.stack([(1 + across) * width / 2 - 0.5, (1 - up) * height / 2 - 0.5], axis=-1)


def turn_matrices(q):
    x, y, z, w = q.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def node_places(path, animation=0):
    """Positions (T, 3) of the nodes by name, by forward kinematics of what pygltflib reads, and matrices (T, 4, 4)."""
    glb = Glb(path)
    nodes, channels = glb.gltf.nodes, {}
    for channel in glb.gltf.animations[animation].channels:
        sampler = glb.gltf.animations[animation].samplers[channel.sampler]
        if channel.target.path in ("rotation", "translation"):
            channels[channel.target.node, channel.target.path] = glb.values(sampler.output)
    count = max(len(values) for values in channels.values())
    found = {}

    def visit(node, above):
        own = nodes[node]
        local = np.tile(np.eye(4), (count, 1, 1))
        turns = channels.get((node, "rotation"), np.tile(own.rotation or (0, 0, 0, 1), (count, 1)))
        local[:, :3, :3] = turn_matrices(turns) * np.array(own.scale or (1, 1, 1))
        local[:, :3, 3] = channels.get((node, "translation"), np.array(own.translation or (0, 0, 0)))
        matrix = above @ local
        found[own.name] = matrix
        for child in own.children or []:
            visit(child, matrix)

    for root in glb.gltf.scenes[0].nodes:
        visit(root, np.eye(4))
    return {name: matrix[:, :3, 3] for name, matrix in found.items()}, found, glb
