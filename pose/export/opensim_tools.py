"""Script for Python with the package `opensim`, run in a folder of `pose-convert --to opensim`: scale and solve.

Usage: python opensim_tools.py MODEL.osim COPY.osim
"""

import re
import sys
from pathlib import Path

import opensim

_CLAMPED = re.compile(r'(<Coordinate name="pelvis_t[xyz]">.*?<clamped>)true(</clamped>)', re.DOTALL)


def main() -> int:
    """Run Scale, Inverse Kinematics and, with forces, Inverse Dynamics on the files of the working directory."""
    source, copy = map(Path, sys.argv[1:])
    # People walk farther than the range of the model's pelvis.
    copy.write_text(_CLAMPED.sub(r"\1false\2", source.read_text(encoding="utf-8")), encoding="utf-8")
    opensim.Logger.removeFileSink()
    done = opensim.ScaleTool("scale.xml").run() and opensim.InverseKinematicsTool("ik.xml").run()
    if done and Path("id.xml").exists():
        done = opensim.InverseDynamicsTool("id.xml").run()
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
