"""The main job and the README's Python examples, by what is installed beside this Python; run as `python -P`.

python -P .ci/main_job.py                 both
python -P .ci/main_job.py --result DIR    only looks at what a main job on dance.mp4 has left
python -P .ci/main_job.py --installed     both, and `pose` must not be the checkout's
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("POSE_TEST_SHARED", ROOT.parent / "shared"))
FRAMES = 545  # of dance.mp4, which shows one dancer


def look_at(result: Path) -> None:
    """A result of dance.mp4 is whole: every file, every frame, the dancer in nearly all of them, in a human size."""
    missing = [name for name in ("poses.json", "poses.npz", "overlay.mp4") if not (result / name).is_file()]
    assert not missing, f"{result}: no {', '.join(missing)}"
    poses = json.loads((result / "poses.json").read_text(encoding="utf-8"))
    assert poses["complete"]
    assert len(poses["frames"]) == FRAMES
    dancer = [person for frame in poses["frames"] for person in frame["people"] if person["id"] == 1]
    assert len(dancer) > 0.95 * FRAMES, f"the dancer is in {len(dancer)} frames"
    heights = sorted(max(y for _, y, _ in p["joints3d"]) - min(y for _, y, _ in p["joints3d"]) for p in dancer)
    assert 1.0 < heights[len(heights) // 2] < 2.2, f"a height of {heights[len(heights) // 2]} m"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", type=Path)
    parser.add_argument("--installed", action="store_true")
    options = parser.parse_args()
    if options.result is not None:
        look_at(options.result)
        return
    import pose

    assert not options.installed or ROOT not in Path(pose.__file__).parents, f"pose is {pose.__file__}"
    command = Path(sys.executable).with_name("pose-run")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "dance"
        subprocess.run([command, "--video", SHARED / "videos" / "dance.mp4", "--out", out], check=True)
        look_at(out)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert examples, "the README has no Python example"
    said = ""
    for example in examples:
        program = [sys.executable, "-P", "-c", example.replace("../shared", str(SHARED))]
        with tempfile.TemporaryDirectory() as folder:  # one of them writes a video where it runs
            said += subprocess.run(program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "person 1" in said, said
    print(f"main job and {len(examples)} Python examples: well (Python {sys.version.split()[0]})")


if __name__ == "__main__":
    main()
