"""Run by a Python with py-c3d: the points of a C3D file, as JSON."""

import json
import sys

import c3d

with open(sys.argv[1], "rb") as file:
    reader = c3d.Reader(file)
    frames = [points.tolist() for _, points, _ in reader.read_frames()]
    labels = [label.strip() for label in reader.point_labels]
    facts = {
        "rate": float(reader.point_rate),
        "units": reader.get("POINT:UNITS").string_value.strip(),
        "labels": labels,
    }
print("RESULT" + json.dumps({**facts, "frames": frames}))
