"""Lift 2D keypoints of your own to 3D: here those that another run observed.

python examples/lift_keypoints.py result/poses.npz
"""

import sys

from pose import lift, load
from pose.structures.sequences import Sequence2D

observed = load(sys.argv[1]).table
person = observed.id[0]
rows = observed.id == person
sequence = Sequence2D(
    observed.keypoints[rows],  # (T, J, 2) px
    observed.scores[rows],  # (T, J) in [0, 1]; 0 means not seen
    observed.time[rows],  # (T,) s
    observed.camera,
    observed.skeleton.name,  # coco17, halpe26, wholebody133, blazepose33 or h36m17
)
result = lift(sequence)
joints = result.joints(space="camera")  # (people, frames, 17, 3) m
print(f"{joints.shape[1]} frames lifted; mean sigma {result.sigma().mean():.0f} mm")
