"""Heels, toes and ankle angles of lifted feet on recorded gait.

    python benchmarks/foot_points.py ../shared/mocap/gait

Level virtual cameras look at people who walk (markers LHEE, LTOE, ... of the files). The ankle angle is that between
shank and the line from heel to toe; of each foot and trial the mean difference to the markers' angle is taken off, as a
calibration would. With "own feet" the shape of the feet is that of the markers while the foot stands; with "usual
feet" the proportions of the program, whose toe is the tip and not the marker. Contacts are those of the ankles
(`pose.world.contacts`). Errors of the 2D: 1 % of the person's height in the image. Every third walk chose the constants
of `pose.world.foot_points` and is left out; --chosen measures those instead.

Directions of feet are also measured for a foot at a right angle to the shank, as characters without foot points have.
"""

import argparse
import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from analysis import FPS, WITHIN_S, _trial
from ankle_angles import DISTANCE, HEIGHT, NOISE, SIZE, angle, seen_from

from pose.lifting.load import load_lifter
from pose.structures.camera import Camera, project
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.world.contacts import find_contacts, point_contacts, runs
from pose.world.floor import ANKLE_HEIGHT
from pose.world.foot_points import DEFAULT_SHAPE, FootShape, ImageFeet, foot_frames, lift_feet

SIDES = ("left", "right")
KNEES, ANKLES = ([H36M17.index(f"{side}_{joint}") for side in SIDES] for joint in ("knee", "ankle"))
VIEWS = 4


def walks(folder: Path):
    """Events, joints (T, 17, 3), heels and toes (T, 2, 2, 3) m, y up, at 30 frames/s, of every trial with events."""
    import ezc3d

    for archive in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened, tempfile.TemporaryDirectory() as scratch:
            for name in sorted(opened.namelist()):
                if not name.endswith(".c3d") or "Static" in name:
                    continue
                path = Path(scratch) / "trial.c3d"
                path.write_bytes(opened.read(name))
                file = ezc3d.c3d(str(path))
                trial = _trial(file, archive.stem, name)
                if trial is None:
                    continue
                labels = file["parameters"]["POINT"]["LABELS"]["value"]
                points = file["data"]["points"][:3].transpose(2, 1, 0)[..., [1, 2, 0]] / 1000
                markers = [labels.index(f"{side}{part}") for side in "LR" for part in ("HEE", "TOE")]
                joints = trial.clip.points[:, :17].astype(float)
                both = np.concatenate([joints, points[:, markers]], axis=1)
                at = np.arange(0, trial.clip.times[-1], 1 / FPS)
                known = np.isfinite(both).all(axis=(1, 2))
                flat = both[known].reshape(known.sum(), -1)
                even = np.stack([np.interp(at, trial.clip.times[known], column) for column in flat.T], axis=1)
                even = even.reshape(len(at), -1, 3)
                even[..., 1] -= np.percentile(even[:, ANKLES, 1], 2) - ANKLE_HEIGHT
                yield trial.events, even[:, :17], even[:, 17:].reshape(len(at), 2, 2, 3)


def ankle_angles(joints: np.ndarray, feet: np.ndarray) -> np.ndarray:
    """(T, 2) degrees between shank and the line from heel to toe."""
    return angle(joints[:, ANKLES] - joints[:, KNEES], feet[:, :, 1] - feet[:, :, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--chosen", action="store_true")
    args = parser.parse_args()
    rng, lifter, camera = np.random.default_rng(0), load_lifter("offline"), Camera.of(SIZE)
    errors: dict[str, list[np.ndarray]] = {}
    places: dict[str, list[np.ndarray]] = {}
    timing: dict[tuple[str, str], list[float]] = {}
    ways: dict[str, list[np.ndarray]] = {}
    for number, (events, joints, markers) in enumerate(walks(args.source)):
        if (number % 3 == 0) != args.chosen:
            continue
        truth = ankle_angles(joints, markers)
        times = np.arange(len(joints)) / FPS
        shape = shape_of(joints, markers, find_contacts(joints[:, ANKLES], times)[0])
        everything = np.concatenate([joints, markers.reshape(len(joints), 4, 3)], axis=1)
        for view in range(VIEWS):
            yaw = 2 * np.pi * (view + 0.5) / VIEWS
            there = seen_from(yaw, everything, joints[:, 0])
            own = there[:, 17:].reshape(-1, 2, 2, 3)
            pixels = project(there, camera.matrix)
            noisy = pixels + rng.normal(0, NOISE, pixels.shape) * np.ptp(pixels[..., 1], axis=1)[:, None, None]
            cases = {"exact 3D of the leg, exact 2D": (there[:, :17], pixels)}
            for title, flat in (("lifted, exact 2D", pixels), ("lifted, 2D with errors", noisy)):
                scores = np.ones((len(flat), 17), np.float32)
                person = Sequence2D(flat[:, :17].astype(np.float32), scores, times, camera, "h36m17")
                answer = lifter.lift(person)
                cases[title] = ((answer.joints + answer.root[:, None]).astype(float), flat)
            runs = [(f"{title}, own feet", shape, *case) for title, case in cases.items()]
            runs.append(("lifted, 2D with errors, usual feet", DEFAULT_SHAPE, *cases["lifted, 2D with errors"]))
            for title, foot, body, flat in runs:
                ankles = in_world(body, yaw, joints[:, 0])[:, ANKLES]
                ankles[..., 1] -= np.percentile(ankles[..., 1], 2) - ANKLE_HEIGHT
                contacts, _ = find_contacts(ankles, times)
                seen = np.concatenate([flat[:, ANKLES][:, :, None], flat[:, 17:].reshape(-1, 2, 2, 2)], axis=2)
                up = np.broadcast_to([0.0, -1.0, 0.0], (len(body), 3))
                seen_feet = ImageFeet(seen, np.ones(seen.shape[:3], np.float32), np.diag(camera.matrix)[None, :2])
                feet = lift_feet(body, seen_feet, up, contacts, foot)
                free = lift_feet(body, seen_feet, up, 0 * contacts, foot)
                square = foot_frames(body, None, None, None, foot)[:, :, 0]
                for kind, found in (("foot points", feet[:, :, 1] - feet[:, :, 0]), ("leg alone", square)):
                    ways.setdefault(f"{title}: {kind}", []).append(angle(found, own[:, :, 1] - own[:, :, 0]).ravel())
                points = in_world(free.reshape(-1, 4, 3), yaw, joints[:, 0]).reshape(-1, 2, 2, 3)
                for name, at, last in (("Foot Strike", 0, False), ("Foot Off", 1, True)):
                    own_contacts = point_contacts(points[:, :, at], times)
                    for how, found in (("ankle", contacts), ("heel" if at == 0 else "toe", own_contacts)):
                        timing.setdefault((title, f"{name}, {how}"), []).extend(
                            delays(found, times, events, name, last)
                        )
                error = ankle_angles(body, feet) - truth
                errors.setdefault(title, []).append((error - error.mean(axis=0)).ravel())
                away = (feet - body[:, ANKLES][:, :, None]) - (own - there[:, ANKLES][:, :, None])
                places.setdefault(title, []).append(1000 * np.linalg.norm(away, axis=-1).reshape(-1, 2))
            errors.setdefault("no image: the trial's mean angle", []).append((truth.mean(axis=0) - truth).ravel())
    print_tables(errors, places, ways, timing)


def print_tables(
    errors: dict[str, list[np.ndarray]],
    places: dict[str, list[np.ndarray]],
    ways: dict[str, list[np.ndarray]],
    timing: dict[tuple[str, str], list[float]],
) -> None:
    """Print the errors of ankle angles (degrees), heels and toes (mm), foot directions (degrees) and events (s)."""
    print("| from | ankle angle: mean error | 95 % | heel from the ankle | toe from the ankle |\n|---|---|---|---|---|")
    for title, parts in errors.items():
        size = np.abs(np.concatenate(parts))
        mm = np.median(np.concatenate(places[title]), axis=0) if title in places else (np.nan, np.nan)
        print(f"| {title} | {size.mean():.1f} | {np.percentile(size, 95):.1f} | {mm[0]:.0f} mm | {mm[1]:.0f} mm |")
    print(f"\n{len(size):,} angles\n\n| direction of the foot from | mean error | 95 % |\n|---|---|---|")
    for title, parts in ways.items():
        size = np.concatenate(parts)
        print(f"| {title} | {size.mean():.1f} | {np.percentile(size, 95):.1f} |")
    print()
    print("| from | event | found | median | 68 % within | 95 % within |\n|---|---|---|---|---|---|")
    for (title, event), found in timing.items():
        ms = 1000 * np.array(found)
        known = ms[np.isfinite(ms)]
        middle = np.median(known)
        within = " | ".join(f"{value:.0f} ms" for value in np.percentile(np.abs(known), [68, 95]))
        print(f"| {title} | {event} | {len(known)} of {len(ms)} | {middle:+.0f} ms | {within} |")


def delays(contacts: np.ndarray, times: np.ndarray, events: list, name: str, last: bool) -> list[float]:
    """s from each event to the nearest beginning (or end) of a contact of that foot; NaN beyond WITHIN_S."""
    found = []
    for label, side, time in events:
        if label == name and times[0] + WITHIN_S < time < times[-1] - WITHIN_S:
            stretches = runs(contacts[:, SIDES.index(side)])
            moments = np.array([times[end - 1] if last else times[begin] for begin, end in stretches] or [np.inf])
            nearest = moments[np.abs(moments - time).argmin()] - time
            found.append(float(nearest) if abs(nearest) <= WITHIN_S else float("nan"))
    return found


def in_world(points: np.ndarray, yaw: float, centre: np.ndarray) -> np.ndarray:
    """The inverse of `seen_from`."""
    forward = np.array([np.sin(yaw), 0, np.cos(yaw)])
    axes = np.stack([np.cross([0.0, -1, 0], forward), [0.0, -1, 0], forward])
    place = np.stack([centre[:, 0], np.full(len(centre), HEIGHT), centre[:, 2]], axis=1) - DISTANCE * forward
    return points @ axes + place[:, None]


def shape_of(joints: np.ndarray, markers: np.ndarray, stands: np.ndarray) -> FootShape:
    """The median foot of the markers (T, 2, 2, 3) while it stands (T, 2)."""
    shank = np.median(np.linalg.norm(joints[:, ANKLES] - joints[:, KNEES], axis=-1))
    away = markers - joints[:, ANKLES][:, :, None]
    ahead = markers[:, :, 1] - markers[:, :, 0]
    ahead[..., 1] = 0
    ahead /= np.linalg.norm(ahead, axis=-1, keepdims=True)
    before = np.median((away * ahead[:, :, None]).sum(axis=-1)[stands], axis=0) / shank
    below = -np.median(away[..., 1][stands], axis=0) / shank
    return FootShape((float(below[0]), float(below[1])), (float(before[0]), float(before[1])))


if __name__ == "__main__":
    main()
