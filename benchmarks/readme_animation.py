"""The README's animation: two seconds of the overlay that `pose-run --demo` writes.

python benchmarks/readme_animation.py --overlay demo/overlay.mp4 --out docs/images/demo.webp
"""

import argparse
from pathlib import Path

import cv2

EVERY = 3  # frames of the video per frame of the animation
QUALITY = 55


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--overlay", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("docs/images/demo.webp"))
    parser.add_argument("--start", type=float, default=2.0, help="first second of the overlay")
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--width", type=int, default=640, help="of the animation, px")
    options = parser.parse_args()
    video = cv2.VideoCapture(str(options.overlay))
    fps = video.get(cv2.CAP_PROP_FPS)
    frames, index = [], 0
    while (read := video.read())[0] and index < (options.start + options.seconds) * fps:
        if index >= options.start * fps and index % EVERY == 0:
            height = round(read[1].shape[0] * options.width / read[1].shape[1])
            frames.append(cv2.resize(read[1], (options.width, height), interpolation=cv2.INTER_AREA))
        index += 1
    animation = cv2.Animation()
    animation.frames = frames
    animation.durations = [round(1000 * EVERY / fps)] * len(frames)
    if not cv2.imwriteanimation(str(options.out), animation, [cv2.IMWRITE_WEBP_QUALITY, QUALITY]):
        raise SystemExit(f"{options.out}: not written")
    print(f"{options.out}: {len(frames)} frames, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
