"""Blend-shape coefficients of faces: known expressions come back, as CSV, on our character and on the user's."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from glb_reader import Glb
from pose_apps.convert import main
from pose_fakes import run_info, seen_result
from rig_files import BONES, rigged

from pose.body.face_units import Expressions, face_units
from pose.export.glb_faces import columns_of
from pose.results import NpzWriter
from pose.structures import rotations
from pose.structures.face_points import Faces
from pose.structures.skeletons import H36M17

UNITS = face_units()
SEEN = np.flatnonzero(UNITS.observed)
EYE_PX = 80.0  # distance of the outer corners of the eyes


def faces(coefficients, rng, noise=0.004):
    """Faces (T, 468, 3) px of a person who is not the model, turned at random, with noise in eye distances."""
    neutral = UNITS.face * rng.uniform(0.93, 1.07, 3)
    moved = neutral + np.einsum("tk,kpi->tpi", coefficients, UNITS.basis)
    axis, angle = rotations.unit(rng.normal(size=(len(moved), 3))), rng.uniform(-0.5, 0.5, len(moved))
    turned = rotations.rotate(rotations.about(axis, angle)[:, None], moved) + rng.normal(0, noise, moved.shape)
    size = EYE_PX * rng.uniform(0.8, 1.2, (len(moved), 1, 1))
    return size * turned * (1, -1, -1) + (300, 200, 0)


def rest_and_each_unit():
    """Coefficients of a person at rest, then of each unit that face points show, alone, between rests."""
    wanted = np.zeros((60 + 2 * len(SEEN), 52))
    wanted[60 + 2 * np.arange(len(SEEN)), SEEN] = 1.0
    return wanted


def test_each_unit_alone_is_found(rng):
    wanted = rest_and_each_unit()
    found = Expressions(points := faces(wanted, rng)).coefficients(points)
    assert np.isnan(found).all(axis=0).tolist() == (~UNITS.observed).tolist()
    rows = wanted.any(axis=1)
    assert (SEEN[found[rows][:, SEEN].argmax(axis=1)] == SEEN).all()
    assert found[rows, SEEN].mean() > 0.65
    assert found[~rows][:, SEEN].max() < 0.25, "a face at rest moves little"
    assert np.sqrt(((found - wanted)[:, SEEN] ** 2).mean()) < 0.06


def test_a_mirrored_face_has_the_other_sides(rng):
    """Left and right are those of the person."""
    wanted = rest_and_each_unit()
    points = faces(wanted, rng, noise=0.0)
    swapped = [UNITS.names.index(_other_side(name)) for name in UNITS.names]
    # The points of the mirrored face in the order of the mesh: each is where its mirror image was.
    mirrored = points * (-1, 1, 1)
    order = np.linalg.norm(UNITS.face[:, None] - UNITS.face[None] * (-1, 1, 1), axis=-1).argmin(axis=0)
    found, other = (Expressions(one).coefficients(one)[:, SEEN] for one in (points, mirrored[:, order]))
    expected = Expressions(points).coefficients(points)[:, swapped][:, SEEN]
    assert np.abs(other - expected).mean() < 0.3 * np.abs(other - found).mean()


def _other_side(name):
    if "Left" in name:
        return name.replace("Left", "Right")
    return name.replace("Right", "Left")


@pytest.fixture
def result(tmp_path, rng):
    """Twenty frames of one person, whose face is seen from the fourth on and opens the mouth in the last."""
    wanted = np.zeros((20, 52))
    wanted[19, UNITS.names.index("jawOpen")] = 1.0
    points = faces(wanted, rng).astype(np.float32)
    info = run_info(H36M17)
    with NpzWriter(tmp_path / "poses.npz", replace(info, settings={**info.settings, "face": True})) as writer:
        for index in range(20):
            one, face = seen_result([(0, 0, 4)], index=index, time=index / 25), Faces.unknown(1)
            if index >= 3:
                face.points[0], face.scores[0] = points[index], 0.9
            writer.write(replace(one, people=replace(one.people, faces=face)))
    return tmp_path / "poses.npz"


def test_the_table_has_a_row_for_each_face(result, tmp_path):
    assert main([str(result), "--to", "blendshapes", "--out", str(tmp_path), "--quiet"]) == 0
    with (tmp_path / "poses-blendshapes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == list(range(3, 20))
    assert {row["eyeLookUpLeft"] for row in rows} == {row["tongueOut"] for row in rows} == {""}
    opened = [float(row["jawOpen"]) for row in rows]
    assert opened[-1] > 0.6 > 0.25 > max(opened[:-1])


def test_morph_targets_of_our_character_move(result, tmp_path):
    assert main([str(result), "--to", "glb", "--out", str(tmp_path), "--quiet"]) == 0
    glb = Glb(tmp_path / "poses.glb")
    (mesh,) = glb.gltf.meshes
    assert mesh.extras["targetNames"] == list(UNITS.names)
    accessors = [glb.gltf.accessors[one["POSITION"]] for one in mesh.primitives[0].targets]
    assert {one.count for one in accessors} == {13_492}
    jaw = accessors[UNITS.names.index("jawOpen")]
    assert -0.05 < jaw.min[1] < -0.02, "the chin sinks by some centimetres"
    node = next(at for at, one in enumerate(glb.gltf.nodes) if one.mesh is not None)
    times, weights, _ = glb.channels()[node, "weights"]
    np.testing.assert_allclose(times, np.arange(3, 20) / 25, atol=1e-6)
    assert weights.shape == (17, 52)
    assert weights[-1].argmax() == UNITS.names.index("jawOpen")


def test_eyes_move_when_they_look_and_not_when_the_jaw_opens():
    """The mesh ends with the eyes, which once took the displacements of tongue and teeth."""
    eyes = {name: UNITS.moved(UNITS.names.index(name))[0] >= 13_348 for name in ("jawOpen", "eyeLookUpLeft")}
    assert (eyes["jawOpen"].sum(), eyes["eyeLookUpLeft"].sum()) == (0, pytest.approx(72, abs=30))


def test_targets_of_the_users_character_move_by_their_names(result, tmp_path):
    morphs = ("vrc.blink", "Face.JawOpen", "eyeBlink_L")
    mine = rigged(tmp_path / "my.glb", {name: name for name in BONES}, morphs=morphs)
    assert main([str(result), "--to", "glb", "--character", str(mine), "--out", str(tmp_path), "--quiet"]) == 0
    glb = Glb(tmp_path / "poses.glb")
    (weights,) = (values for (_, path), (_, values, _) in glb.channels().items() if path == "weights")
    assert (weights[:, 0] == 0.5).all(), "an unknown target keeps its weight"
    assert weights[-1, 1] > 0.6 > 0.25 > weights[:-1, 1].max()
    assert columns_of(["mouthSmile_R", "x"]) == [UNITS.names.index("mouthSmileRight"), -1]


def test_results_without_faces_have_no_rows_and_no_targets(tmp_path):
    with NpzWriter(tmp_path / "poses.npz", run_info(H36M17)) as writer:
        for index in range(3):
            writer.write(seen_result([(0, 0, 4)], index=index, time=index / 25))
    call = [str(tmp_path / "poses.npz"), "--to", "glb,blendshapes", "--out", str(tmp_path), "--quiet"]
    assert main(call) == 0
    assert len((tmp_path / "poses-blendshapes.csv").read_text().splitlines()) == 1
    assert not Glb(tmp_path / "poses.glb").gltf.meshes[0].primitives[0].targets
