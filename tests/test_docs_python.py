"""Every Python block of docs/ runs, on what its page says it gets. The README's run in test_readme.py.

What a block takes from outside (arrays, files, a socket's sender, a camera) is prepared by its entry in PREPARED; a
block that is not in the table fails the test, so a new one cannot be left out.
"""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCKS = [
    (page.relative_to(DOCS).as_posix(), block)
    for page in sorted(DOCS.rglob("*.md"))
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
]
POSES = """
import numpy as np
some = np.random.default_rng(0).normal(size=(9, 17, 3))
np.savez("truth.npz", joints3d=some)
np.savez("predictions.npz", walk=some + 0.1)
"""
KNEE = """
import matplotlib
matplotlib.use("Agg")
import numpy as np
data, person, flexion = {"time": np.arange(4) / 30}, np.ones(4, bool), np.arange(4.0)
"""
RESULT = """
from pose_apps.run import main
assert main(["../shared/videos/dance.mp4", "--end", "0.2", "--formats", "npz", "--out", "."]) == 0
"""
STREAM = """
import numpy as np
seen = np.random.default_rng(0).uniform(100, 400, (2, 17, 2)).astype(np.float32)
frames = [(seen, np.ones((2, 17), np.float32), index / 30) for index in range(8)]
"""
SEQUENCE = """
import numpy as np
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
seen = np.random.default_rng(0).uniform(100, 400, (20, 17, 2)).astype(np.float32)
sequence = Sequence2D(seen, np.ones((20, 17), np.float32), np.arange(20) / 30, Camera.of((640, 480)), "coco17")
"""
DETECTOR = """
import shutil
import numpy as np
shutil.copy("../shared/weights/yolo26n-person-320-int8.onnx", "mine.onnx")
image = np.zeros((240, 320, 3), np.uint8)
"""
SHORT_CLIP = """
from pathlib import Path
from short_clips import beginning
beginning(Path("../shared/videos/squats.mp4"), Path("short.mp4"), 1)
"""
EDITS = """
import json
from pathlib import Path
from short_clips import beginning
beginning(Path("../shared/videos/squats.mp4"), Path("clip.mp4"), 2)
person = {"time": 0, "x": 360, "y": 640}
edits = [{"edit": "height", "person": person, "metres": 1.6}]
Path("edits.json").write_text(json.dumps({"format": "pose-edits", "version": 1, "edits": edits}))
"""
# A line that only this block has -> what runs before it, and what is replaced in it so that it ends.
PREPARED: dict[str, tuple[str, dict[str, str]]] = {
    "from pose_detectors.yolo import YoloDetector": (DETECTOR, {}),
    "from pose.training.evaluation.metrics import mpjpe": (POSES, {}),
    'np.savez("theirs.npz"': ("", {}),
    "from matplotlib import pyplot": (KNEE, {}),
    'convert(result, ["bvh", "csv"]': ("", {"end=2.0": "end=0.2"}),
    "from pose.lifting.stream import LifterStream": (STREAM, {}),
    'edits="edits.json"': (EDITS, {}),
    "receiver = socket.socket": (
        "import socket\nsender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nPOSE = "
        + repr(
            b'{"type": "pose", "final": false, "id": 1, "root": [0, 0, 3], "joints3d": '
            + repr([[0, 0, 0]] * 17).encode()
            + b"}"
        )
        + "\n",
        {
            'receiver.bind(("127.0.0.1", 9000))': (
                'receiver.bind(("127.0.0.1", 0)); sender.sendto(POSE, receiver.getsockname())'
            ),
            "while True:": "for _ in range(1):",
        },
    ),
    "from pose import LiveLoop": (SHORT_CLIP, {'open_live("0")': 'open_live("short.mp4")'}),
    "VideoWriter(Path": ("", {"walk-by.mp4": "squats.mp4"}),
    'load_poses("poses.npz")': (RESULT, {}),
    'np.load("poses.npz")': (RESULT, {}),
    "pelvis at {result.poses.root[row]} m": (SHORT_CLIP, {"../shared/videos/squats.mp4": "short.mp4"}),
    "session.push(Frame(image": ("", {}),
    "from pose import analyse": (RESULT, {"walk/poses.npz": "poses.npz"}),
    'VideoWriter("drawn.mp4"': (SHORT_CLIP, {"clip.mp4": "short.mp4"}),
    "from pose.lifting.repair.person import repair": (SEQUENCE, {}),
    "from pose.lifting.forecast import forecast": ("", {}),
    "import mediapipe_pose as mp_pose": (
        SHORT_CLIP + 'import cv2\ncv2.imwrite("photo.jpg", cv2.VideoCapture("short.mp4").read()[1])\n',
        {},
    ),
    "from pose.body.imu import": (
        "from pathlib import Path\nfrom pose.body.imu import read_imus, solve_imus\n"
        'motion = solve_imus(read_imus(Path("../shared/mocap/imu/lower-body-walk.zip")))\n'
        "joints, times = motion.joints, motion.times\n",
        {"walk.zip": "../shared/mocap/imu/lower-body-walk.zip"},
    ),
    "result.hand_scores()": (SHORT_CLIP, {"clip.mp4": "short.mp4"}),
    "head_angles(points)": (SHORT_CLIP, {"clip.mp4": "short.mp4"}),
    "FreeHandTracker(HandNetwork": (SHORT_CLIP, {"hands.mp4": "short.mp4"}),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a block leaves it to the end of its process to close sockets
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{page}-{place}" for place, (page, _) in enumerate(BLOCKS)])
def test_python_block_of_a_page_runs(page, block, shared, at_hand, tmp_path, monkeypatch):
    """In this process: to load torch, OpenCV and ONNX Runtime again for each block takes longer than most blocks."""
    known = [entry for line, entry in PREPARED.items() if line in block]
    assert len(known) == 1, f"docs/{page} has a Python block that PREPARED does not know"
    before, replaced = known[0]
    for written, run in replaced.items():
        assert written in block
        block = block.replace(written, run)
    program = (before + block).replace("../shared", str(shared))
    monkeypatch.chdir(tmp_path)
    exec(compile(program, f"docs/{page}", "exec"), {"__name__": "__main__"})
