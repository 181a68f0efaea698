"""Run by a Python with pybvh: the joints' places of a BVH file, as JSON."""

import json
import sys

import pybvh

motion = pybvh.read_bvh_file(sys.argv[1])
places = motion.joint_positions()
print("RESULT" + json.dumps({"names": list(motion.joint_names), "places": places.tolist(), "step": motion.frame_time}))
