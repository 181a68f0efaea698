"""Read a result without this package: NumPy is enough.

python examples/read_poses_npz.py result/poses.npz
"""

import sys

import numpy as np

data = np.load(sys.argv[1])  # plain arrays, no pickle
joints = data["root"][:, None] + data["joints3d"]  # (N, 17, 3) m, camera frame: x right, y down, z forward
for person in np.unique(data["id"]):
    rows = data["id"] == person
    seconds = data["time"][rows]
    distance = joints[rows, 0, 2].mean()
    print(
        f"person {person}: {seconds[0]:.2f} to {seconds[-1]:.2f} s, {rows.sum()} frames, "
        f"{distance:.1f} m from the camera, median sigma {np.median(data['sigma'][rows]):.0f} mm"
    )
