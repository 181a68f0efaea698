"""Small files in the exact layouts of the benchmarks, of a body whose geometry is known.

The real data is licensed. docs/reference/benchmark-data.md describes its layout. These files hold a stick figure
that walks on the spot at a known place, so every reader has a known answer.
"""

import json
import pickle
from importlib import resources

import numpy as np

CAMERA_DATA = json.loads(resources.files("pose_datasets").joinpath("human36m_cameras.json").read_text("utf-8"))
# Metres, z up, facing +y: Human3.6M-17 of a person who stands at the origin.
STANDING = np.array(
    [
        [0, 0, 0.95], [0.13, 0, 0.95], [0.14, 0.02, 0.5], [0.14, -0.03, 0.08], [-0.13, 0, 0.95], [-0.14, 0.02, 0.5],
        [-0.14, -0.03, 0.08], [0, 0.02, 1.2], [0, 0, 1.45], [0, 0.08, 1.55], [0, 0.02, 1.66], [-0.16, 0, 1.42],
        [-0.22, 0.02, 1.14], [-0.25, 0.1, 0.9], [0.16, 0, 1.42], [0.22, 0.02, 1.14], [0.25, 0.1, 0.9],
    ]
)  # fmt: skip
KEPT = [0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 15, 17, 18, 19, 25, 26, 27]


def walker(frames, phase=0.0):
    """(T, 17, 3) m, world frame: the legs and arms swing, the person drifts and turns."""
    t = np.arange(frames)[:, None] / 50 + phase
    points = np.repeat(STANDING[None], frames, axis=0)
    swing = 0.15 * np.sin(6 * t)
    points[:, [2, 3, 12, 13], 1] += swing * [1, 2, 0.5, 1]
    points[:, [5, 6, 15, 16], 1] -= swing * [1, 2, 0.5, 1]
    angle = 0.5 * t[:, 0]
    turn = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=-1).reshape(-1, 2, 2)
    points[..., :2] = points[..., :2] @ np.swapaxes(turn, 1, 2) + 0.2 * np.stack([np.sin(t), np.cos(t)], axis=-1)
    return points


def raw_32(points):
    """(T, 17, 3) as the 32 raw joints: the others are far away, so that one taken by mistake shows."""
    raw = np.full((len(points), 32, 3), 7.0)
    raw[:, KEPT] = points
    return raw


def slow_pixel(point_world, subject, index):
    """One world point (m) in one camera, by the formulas of docs/guides/evaluation.md, number by number."""
    lens, place = CAMERA_DATA["intrinsics"][index], CAMERA_DATA["extrinsics"][subject][index]
    x, y, z = slow_camera_point(point_world, place)
    a, b = max(-1.0, min(1.0, x / z)), max(-1.0, min(1.0, y / z))
    (k1, k2, k3), (p1, p2) = lens["radial_distortion"], lens["tangential_distortion"]
    r2 = a * a + b * b
    factor = 1 + k1 * r2 + k2 * r2**2 + k3 * r2**3 + p1 * a + p2 * b
    (fx, fy), (cx, cy) = lens["focal_length"], lens["center"]
    return fx * (a * factor + p1 * r2) + cx, fy * (b * factor + p2 * r2) + cy


def slow_camera_point(point_world, place):
    """q^-1 (X - t) q with quaternions multiplied out as Hamilton did."""
    w, i, j, k = place["orientation"]
    x, y, z = (p - t / 1000 for p, t in zip(point_world, place["translation"], strict=True))
    return hamilton(hamilton((w, -i, -j, -k), (0.0, x, y, z)), (w, i, j, k))[1:]


def hamilton(a, b):
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def write_protocol_v(folder, takes, noise=4.0, extra_frames=3):
    """The three .npz files for takes {"S9": {"Walking 1": frames}}; CPN is the truth plus `noise` px, and longer."""
    from pose_datasets.human36m import load_cameras

    rng = np.random.default_rng(5)
    folder.mkdir(parents=True, exist_ok=True)
    positions, exact, detected = {}, {}, {}
    for subject, of_subject in takes.items():
        positions[subject], exact[subject], detected[subject] = {}, {}, {}
        for take, frames in of_subject.items():
            points = walker(frames, phase=len(positions[subject]))
            positions[subject][take] = raw_32(points).astype(np.float32)
            views = [camera.project(camera.to_camera(points)) for camera in load_cameras()[subject]]
            exact[subject][take] = [view.astype(np.float32) for view in views]
            longer = [np.concatenate([view, view[-1:].repeat(extra_frames, axis=0)]) for view in views]
            detected[subject][take] = [(v + noise * rng.normal(size=v.shape)).astype(np.float32) for v in longer]
    metadata = {
        "layout_name": "h36m",
        "num_joints": 17,
        "keypoints_symmetry": [[4, 5, 6, 11, 12, 13], [1, 2, 3, 14, 15, 16]],
    }
    np.savez_compressed(folder / "data_3d_h36m.npz", positions_3d=positions)
    np.savez_compressed(folder / "data_2d_h36m_gt.npz", positions_2d=exact, metadata=metadata)
    np.savez_compressed(folder / "data_2d_h36m_cpn_ft_h36m_dbb.npz", positions_2d=detected, metadata=metadata)
    return folder


def write_raw_release(folder, takes):
    """`D3_Positions` CDF files, float32 mm, for takes {"S9": {"WalkingDog 1": frames}}."""
    from cdflib import cdfwrite

    for subject, of_subject in takes.items():
        target = folder / subject / "MyPoseFeatures" / "D3_Positions"
        target.mkdir(parents=True)
        for take, frames in of_subject.items():
            data = (raw_32(walker(frames)) * 1000).astype(np.float32).reshape(1, frames, 96)
            spec = {"Majority": "row_major", "Encoding": 6, "Checksum": False, "rDim_sizes": []}
            file = cdfwrite.CDF(str(target / f"{take}.cdf"), cdf_spec=spec)
            layout = {
                "Variable": "Pose",
                "Data_Type": 44,
                "Num_Elements": 1,
                "Rec_Vary": True,
                "Dim_Sizes": [frames, 96],
            }
            file.write_var(layout, var_data=data)
            file.close()
    return folder


def image_space(camera_points, lens):
    """The 2.5D labels of (T, 17, 3) m in the camera frame: px, mm a pixel, and mm."""
    fx, fy = lens["focal_length"]
    cx, cy = lens["center"]
    millimetres = camera_points * 1000
    image, factors = np.empty_like(millimetres), np.empty(len(millimetres))
    for t, pose in enumerate(millimetres):
        left, right = (fx * (pose[0, 0] + side * 1000) / pose[0, 2] + cx for side in (-1, 1))
        ratio = (right - left + 1) / 2000
        for j, (x, y, z) in enumerate(pose):
            image[t, j] = fx * x / z + cx, fy * y / z + cy, ratio * (z - pose[0, 2])
        factors[t] = 1 / ratio
    return image, factors, image * factors[:, None, None]


ACTION_NUMBERS = {
    "Directions": 2,
    "Discussion": 3,
    "Eating": 4,
    "Greeting": 5,
    "Phoning": 6,
    "Sitting": 9,
    "Walking": 14,
}


def motionbert_half(videos, noise=4.0):
    """One half of the pickle for videos [("S9", "Walking", 1, camera index, frames)]."""
    from pose_datasets.human36m import load_cameras

    rng = np.random.default_rng(6)
    columns = {name: [] for name in HALF}
    for subject, action, subaction, index, frames in videos:
        camera, lens = load_cameras()[subject][index], CAMERA_DATA["intrinsics"][index]
        points = camera.to_camera(walker(frames))
        image, factors, scaled = image_space(points, lens)
        number = f"s_{int(subject[1:]):02d}_act_{ACTION_NUMBERS[action]:02d}_subact_{subaction:02d}_ca_{index + 1:02d}"
        columns["joint_2d"].append(camera.project(points) + noise * rng.normal(size=(frames, 17, 2)))
        columns["confidence"].append(rng.uniform(0.5, 1.0, (frames, 17, 1)))
        columns["joint3d_image"].append(image)
        columns["2.5d_factor"].append(factors)
        columns["joints_2.5d_image"].append(scaled)
        columns["camera_name"].append([lens["id"]] * frames)
        columns["source"].append([number] * frames)
        columns["action"].append([action] * frames)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


HALF = (
    "joint_2d",
    "confidence",
    "joint3d_image",
    "2.5d_factor",
    "joints_2.5d_image",
    "camera_name",
    "source",
    "action",
)


def write_protocol_m(folder, test, train=(("S1", "Walking", 1, 0, 30),), **options):
    """The MotionBERT pickle."""
    folder.mkdir(parents=True, exist_ok=True)
    halves = {"train": motionbert_half(train, **options), "test": motionbert_half(test, **options)}
    for name in ("action", "2.5d_factor", "joints_2.5d_image"):
        del halves["train"][name]
    (folder / "h36m_sh_conf_cam_source_final.pkl").write_bytes(pickle.dumps(halves))
    return folder


# Where their joints are among ours; the reader turns it round.
MPI_FROM_OURS = [10, 8, 14, 15, 16, 11, 12, 13, 1, 2, 3, 4, 5, 6, 0, 7, 9]
MPI_LENS = np.array([[1500.0, 0, 1024], [0, 1500, 1024], [0, 0, 1]])


def write_mpi_inf_3dhp(folder, frames, invalid=(), universal_scale=1.1):
    """`annot_data.mat` for {"TS1": frames}; `invalid` frames are marked so and hold nonsense."""
    import h5py

    for name, count in frames.items():
        (folder / name).mkdir(parents=True)
        points = walker(count)[:, MPI_FROM_OURS][..., [0, 2, 1]] * [1, -1, 1] + [0, 1, 4]
        valid = np.ones((count, 1))
        valid[list(invalid)] = 0
        points[list(invalid)] = 1e6
        pixels = points[..., :2] / points[..., 2:] * 1500 + 1024
        universal = points[:, 14:15] + universal_scale * (points - points[:, 14:15])
        with h5py.File(folder / name / "annot_data.mat", "w") as file:
            file["annot2"] = pixels[:, None]
            file["annot3"] = 1000 * points[:, None]
            file["univ_annot3"] = 1000 * universal[:, None]
            file["valid_frame"] = valid
    return folder
