"""The main job and README's Python examples, by what is installed beside this Python; run as `python -P`.

python -P .ci/main_job.py                 both
python -P .ci/main_job.py --result DIR    checks what a `pose-run --demo` has left, and runs the examples
python -P .ci/main_job.py --installed     both, and `pose` must not be the checkout's
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FRAMES = 230  # of the demo clip, which shows two people


def check_result(result: Path) -> None:
    """A result of the demo clip is whole: every file, every frame, two people in most of them, of human size."""
    missing = [name for name in ("poses.json", "poses.npz", "overlay.mp4") if not (result / name).is_file()]
    assert not missing, f"{result}: no {', '.join(missing)}"
    poses = json.loads((result / "poses.json").read_text(encoding="utf-8"))
    assert poses["complete"]
    assert len(poses["frames"]) == FRAMES
    for number in (1, 2):
        seen = [person for frame in poses["frames"] for person in frame["people"] if person["id"] == number]
        assert len(seen) > 0.4 * FRAMES, f"person {number} is in {len(seen)} frames"
        heights = sorted(max(y for _, y, _ in p["joints3d"]) - min(y for _, y, _ in p["joints3d"]) for p in seen)
        assert 1.0 < heights[len(heights) // 2] < 2.2, f"person {number}: a height of {heights[len(heights) // 2]} m"


def run_examples(folder: Path) -> None:
    """README's Python examples, on the first two seconds of the demo clip."""
    import av

    from pose.networks.weights import locate

    clip = folder / "clip.mp4"
    with av.open(str(locate("demo-clip"))) as source, av.open(str(clip), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None and packet.pts * packet.time_base < 2:
                packet.stream = stream
                target.mux(packet)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert examples, "README has no Python example"
    said = ""
    for example in examples:
        program = [sys.executable, "-P", "-c", example]
        said += subprocess.run(program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "person 1" in said, said
    print(f"main job and {len(examples)} Python examples: well (Python {sys.version.split()[0]})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", type=Path)
    parser.add_argument("--installed", action="store_true")
    options = parser.parse_args()
    import pose

    assert not options.installed or ROOT not in Path(pose.__file__).parents, f"pose is {pose.__file__}"
    with tempfile.TemporaryDirectory() as folder:
        result = options.result
        if result is None:
            result = Path(folder) / "demo"
            subprocess.run([Path(sys.executable).with_name("pose-run"), "--demo", "--out", result], check=True)
        check_result(result)
        run_examples(Path(folder))


if __name__ == "__main__":
    main()
