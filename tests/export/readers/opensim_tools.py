"""Run by a Python with OpenSim: Scale and Inverse Kinematics by the set-up files of a folder.

Prints the number of solved frames, the RMS marker error over all of them, and how far the hips of the scaled model lie
from the markers where motion.mot poses it (the largest of all frames), m.
"""

import json
import math
import os
import sys

import opensim

os.chdir(sys.argv[1])
opensim.Logger.setLevelString("Error")
assert opensim.ScaleTool("scale.xml").run()
assert opensim.InverseKinematicsTool("ik.xml").run()

with open("ik_ik_marker_errors.sto" if os.path.exists("ik_ik_marker_errors.sto") else "_ik_marker_errors.sto") as file:
    lines = file.read().split("endheader")[1].split("\n")[2:]
errors = [float(line.split()[2]) for line in lines if line.strip()]

model = opensim.Model("scaled.osim")
state = model.initSystem()
motion, markers = opensim.TimeSeriesTable("motion.mot"), opensim.TimeSeriesTableVec3("markers.trc")
names, labels = list(markers.getColumnLabels()), motion.getColumnLabels()
worst = 0.0
for frame in range(markers.getNumRows()):
    row, seen = motion.getRowAtIndex(frame), markers.getRowAtIndex(frame)
    for column, label in enumerate(labels):
        coordinate = model.getCoordinateSet().get(label)
        rotates = coordinate.getMotionType() == opensim.Coordinate.Rotational
        coordinate.setValue(state, math.radians(row[column]) if rotates else row[column], False)
    model.assemble(state)
    model.realizePosition(state)
    for name in ("left_hip", "right_hip"):
        place, marker = model.getMarkerSet().get(name).getLocationInGround(state), seen[names.index(name)]
        away = math.dist([place[axis] for axis in range(3)], [marker[axis] for axis in range(3)])
        worst = worst if math.isnan(away) else max(worst, away)
rms = math.sqrt(sum(error * error for error in errors) / len(errors))
print("RESULT" + json.dumps({"frames": len(errors), "rms": rms, "hips": worst}))
