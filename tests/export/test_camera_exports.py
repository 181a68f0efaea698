"""The cameras of GLB and Rerun, read back: joints must be seen where the video's camera sees them."""

from dataclasses import replace

import numpy as np
import pytest
from export_fakes import wave
from glb_reader import Glb, turn_matrices
from pose_fakes import run_info

from pose.body.rigs import STICKS
from pose.body.skeleton import ORDER, joint_positions
from pose.body.space import camera_space
from pose.body.tracks import open_selection
from pose.errors import PoseError
from pose.export import export
from pose.results import MotionInfo, NpzWriter, WorldInfo
from pose.structures.camera import Camera, project
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import CameraView, FrameResult, People, Placed, Poses3D
from pose.world.camera_motion.verdict import ROTATING, TRANSLATING, CameraMotion
from pose.world.frame import BODIES, World, rotation_of

FRAMES = 20
SIZE = (640, 480)
WORLD = World(rotation_of(np.array([0.05, -1.0, -0.2])), -1.3, BODIES, 1.0)
FILE_TO_CAMERA = np.diag([1.0, -1.0, -1.0])


@pytest.fixture
def joints(body, rng):
    """(T, 17, 3) m in the camera frame of each image."""
    return joint_positions(body, wave(FRAMES, rng)) @ FILE_TO_CAMERA


@pytest.fixture
def exported(tmp_path, joints):
    """exported(name, ...) -> what an export makes of a result whose person has these joints."""

    def make(name, camera=None, turns=None, zooms=None, moved=None, world=None, cameras=(), motion=None, **options):
        if turns is not None or zooms is not None:
            kind = ROTATING if moved is None else TRANSLATING
            motion = MotionInfo(CameraMotion(kind, 1.0, distance=np.nan if moved is None else 2.0), compensated=True)
        info = replace(
            run_info(H36M17), camera=camera or Camera.of(SIZE), cameras=cameras, motion=motion,
            world=None if world is None else WorldInfo(world),
        )  # fmt: skip
        with NpzWriter(tmp_path / "poses.npz", info) as writer:
            for frame, own in enumerate(joints.astype(np.float32)):
                seen = People(
                    frame, frame / 30, np.array([1]), np.zeros((1, 4), np.float32), np.ones(1, np.float32),
                    np.full((1, 17, 2), 50, np.float32), np.full((1, 17), 0.9, np.float32),
                )  # fmt: skip
                poses = Poses3D((own - own[0])[None], own[:1], np.full((1, 17), 30, np.float32))
                unknown = np.full(1, np.nan, np.float32)
                placed = Placed(own[None], unknown, np.zeros((1, 2), np.float32), np.zeros(1, bool), unknown)
                view = None
                if turns is not None or zooms is not None:
                    turn = np.eye(3) if turns is None else turns[frame]
                    place_of = None if moved is None else moved[frame]
                    view = CameraView(turn, 1.0 if zooms is None else float(zooms[frame]), 0.1, place_of)
                writer.write(FrameResult(seen, poses, None if world is None else placed, view))
        recording = open_selection(tmp_path / "poses.npz", rig=STICKS, **options)
        (made,) = export(recording, [name], tmp_path, "out")
        return made

    return make


@pytest.fixture
def glb_of(exported):
    """glb_of(...) -> the GLB, and the notes on it."""

    def make(*args, **options):
        made = exported("glb", *args, **options)
        return Glb(made.path), made.notes

    return make


def check_pixels(glb, joints, camera, zooms=None, number=0, first=0, atol=0.05):
    """Joints that the GLB shows, seen by its camera, against joints of each image, seen by that image's."""
    places, times = glb.places(0)
    for step in (0, len(times) // 2, len(times) - 1):
        matrix = camera.matrix.copy()
        matrix[[0, 1], [0, 1]] *= 1.0 if zooms is None else zooms[first + step]
        expected = project(joints[first + step][ORDER], matrix)
        np.testing.assert_allclose(glb.pixels(places[step], number, step), expected, atol=atol)


def described(name, camera, rotation, translation):
    """A camera as results of several hold it."""
    return {
        "name": name, "size": list(camera.size), "K": camera.matrix.tolist(), "distortion": [0.0, 0.0, 0.0, 0.0],
        "R": rotation.tolist(), "t": translation.tolist(), "offset": 0.0, "drift": 0.0, "residual_px": None,
        "sigma": {"rotation": 0.0, "position": 0.0, "offset": 0.0},
    }  # fmt: skip


def pan(degrees=25.0):
    turn = np.radians(degrees) * np.sin(np.arange(FRAMES) / 6)
    return to_matrix(np.stack([0.2 * turn, turn, 0.1 * turn], axis=1))


def test_exported_static_camera_reprojects_the_joints(glb_of, joints):
    glb, notes = glb_of()
    check_pixels(glb, joints, Camera.of(SIZE))
    assert {path for node, path in glb.channels() if glb.gltf.nodes[node].camera is not None} == set()
    assert not any("camera:" in note for note in notes)
    assert glb.gltf.extensionsUsed == []


def test_rotating_camera_is_animated_in_the_world(glb_of, joints):
    glb, _ = glb_of(turns=pan(), world=WORLD)
    check_pixels(glb, joints, Camera.of(SIZE))
    node = next(i for i, node in enumerate(glb.gltf.nodes) if node.camera == 0)
    times, turns, kind = glb.channels()[node, "rotation"]
    assert kind == "LINEAR"
    np.testing.assert_allclose(times, np.arange(FRAMES) / 30, atol=1e-6)
    assert ((turns[1:] * turns[:-1]).sum(axis=1) > 0.99).all()
    assert glb.gltf.nodes[node].translation[1] == pytest.approx(1.3), "above the floor"
    assert glb.gltf.extensionsUsed == []


@pytest.mark.parametrize("height", [None, 1.9])
def test_translating_camera_is_animated_with_its_position(glb_of, joints, height):
    """People and the path are scaled by the same factor, which no image shows."""
    moved = np.linspace(0, 2, FRAMES)[:, None] * np.array([1.0, 0.1, 0.3])
    heights = {} if height is None else {None: height}
    glb, _ = glb_of(turns=pan(), moved=moved, world=WORLD, heights=heights)
    check_pixels(glb, joints, Camera.of(SIZE))
    node = next(i for i, node in enumerate(glb.gltf.nodes) if node.camera == 0)
    _, places, kind = glb.channels()[node, "translation"]
    assert kind == "LINEAR"
    length = np.linalg.norm(places[-1] - places[0])
    expected = np.linalg.norm(moved[-1])
    assert length == pytest.approx(expected, abs=1e-4) if height is None else length > 1.01 * expected


def test_a_zoom_is_animated_and_named(glb_of, joints):
    zooms = np.linspace(1, 1.5, FRAMES)
    glb, notes = glb_of(turns=pan(), zooms=zooms, world=WORLD)
    check_pixels(glb, joints, Camera.of(SIZE), zooms)
    assert glb.gltf.extensionsUsed == ["KHR_animation_pointer"]
    assert glb.gltf.extensionsRequired == []
    height, focal = SIZE[1], Camera.of(SIZE).matrix[1, 1]
    median = 2 * np.arctan(height / (2 * focal * 1.25))
    assert glb.gltf.cameras[0].perspective.yfov == pytest.approx(median, abs=0.005), "what other readers show"
    assert any(note.startswith("camera: zoom, ") for note in notes)


def test_off_centre_principal_point_rotates_the_exported_camera(glb_of, joints):
    camera = Camera.of(SIZE, np.array([[560.0, 0, 370.0], [0, 560.0, 220.0], [0, 0, 1]]))
    glb, notes = glb_of(camera, world=WORLD)
    (note,) = (note for note in notes if note.startswith("camera: the principal point"))
    off = float(note.split("up to ")[1].split(" px")[0])
    assert 5 < off < np.hypot(50.5, 19.5), "less than without the turn"
    check_pixels(glb, joints, camera, atol=off)
    assert glb.gltf.cameras[0].extras["K"] == camera.matrix.tolist()


def test_every_camera_of_a_rig_is_exported(glb_of, joints):
    """The second one stands 2 m to the right and looks back at the person."""
    turn = to_matrix(np.array([[0.0, 0.5, 0.0]]))[0]
    second = Camera.of((400, 300))
    cameras = [
        described(name, camera, r, t)
        for name, camera, r, t in (
            ("left", Camera.of(SIZE), np.eye(3), np.zeros(3)),
            ("right", second, turn, -turn @ [2.0, 0.0, 0.0]),
        )
    ]
    glb, _ = glb_of(cameras=tuple(cameras), world=WORLD)
    assert [camera.name for camera in glb.gltf.cameras] == ["left", "right"]
    check_pixels(glb, joints, Camera.of(SIZE))
    check_pixels(glb, (joints - [2.0, 0.0, 0.0]) @ turn.T, second, number=1)
    with pytest.raises(PoseError, match="not a calibration"):
        glb_of(cameras=({"name": "left"},))


def test_rerun_contains_the_camera_path(exported):
    chunk = pytest.importorskip("rerun.chunk")
    zooms = np.linspace(1, 1.5, FRAMES)
    made = exported("rrd", turns=pan(), zooms=zooms, world=WORLD)
    rows = {}
    for part in chunk.RrdReader(str(made.path)).stream().to_chunks():
        if part.entity_path == "/world/camera":
            batch = part.to_record_batch()
            for name in ("Transform3D:quaternion", "Transform3D:translation", "Pinhole:image_from_camera"):
                if name in batch.schema.names:
                    rows.setdefault(name, []).extend(row[0] for row in batch.column(name).to_pylist())
    turns, places = np.array(rows["Transform3D:quaternion"]), np.array(rows["Transform3D:translation"])
    np.testing.assert_allclose(turn_matrices(turns), WORLD.rotation @ pan(), atol=1e-5)
    np.testing.assert_allclose(places, np.tile([0, 1.3, 0], (FRAMES, 1)), atol=1e-6)
    focal = sorted(matrix[0] for matrix in rows["Pinhole:image_from_camera"])  # column after column
    np.testing.assert_allclose(focal, Camera.of(SIZE).matrix[0, 0] * zooms, rtol=1e-5)


def test_note_names_the_option_only_if_the_result_has_a_world():
    assert camera_space("").note.endswith("--space world aligns it")
    note = camera_space("the camera's motion is translating, so the result has no world").note
    assert "--space" not in note
    assert note.endswith("the camera's motion is translating, so the result has no world")
