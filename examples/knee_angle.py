"""Plot the knee flexion of every person over time, with its standard deviation. Needs matplotlib.

python examples/knee_angle.py result/poses.npz knee.png
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from pose import load

result = load(sys.argv[1])
angles = result.angles()
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for row, person in enumerate(result.people):
    for side in ("left", "right"):
        column = angles.names.index(f"{side}_knee_flexion")
        degrees, deviation = angles.degrees[row, :, column], angles.deviations[row, :, column]
        axes.plot(result.times, degrees, label=f"person {person}, {side}")
        axes.fill_between(result.times, degrees - deviation, degrees + deviation, alpha=0.2)
axes.set_xlabel("time (s)")
axes.set_ylabel("knee flexion (degrees)")
axes.legend()
figure.savefig(sys.argv[2])
