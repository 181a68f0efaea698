"""Compare two lifters on the same 2D: how far apart their joints are.

python examples/compare_lifters.py result/poses.npz offline stream

With ground truth use `pose-eval sequence --keypoints ... --gt ... --lifter A --compare B`.
"""

import sys

import numpy as np

from pose import lift, load
from pose.structures.sequences import Sequence2D
from pose.training.evaluation.metrics import mpjpe, p_mpjpe

observed = load(sys.argv[1]).table
rows = observed.id == observed.id[0]
sequence = Sequence2D(
    observed.keypoints[rows], observed.scores[rows], observed.time[rows], observed.camera, observed.skeleton.name
)
first, second = (lift(sequence, lifter=name).joints(space="camera")[0] for name in sys.argv[2:4])
first, second = (joints - joints[:, :1] for joints in (first, second))  # relative to the pelvis
seen = np.isfinite(first).all(axis=(1, 2)) & np.isfinite(second).all(axis=(1, 2))
print(f"{sys.argv[2]} against {sys.argv[3]}, {seen.sum()} frames:")
print(f"MPJPE {mpjpe(first[seen], second[seen]):.1f} mm, P-MPJPE {p_mpjpe(first[seen], second[seen]):.1f} mm")
