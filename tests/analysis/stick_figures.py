"""Motions whose figures are known: an upright stick figure that walks, squats, jumps or stands."""

from dataclasses import replace

import numpy as np
from pose_fakes import run_info

from pose.body.gait import RUN_STRIKE_SHIFT_S
from pose.body.segments import Motion
from pose.results import NpzWriter, WorldInfo
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Placed, Poses3D
from pose.world.frame import World

WORLD = World(np.diag([1.0, -1.0, -1.0]), 0.0, "feet", 2.0)

THIGH, SHANK = 0.45, 0.45
STANDING = {
    "pelvis": (0, 0.98, 0), "right_hip": (-0.1, 0.98, 0), "right_knee": (-0.1, 0.53, 0), "right_ankle": (-0.1, 0.08, 0),
    "left_hip": (0.1, 0.98, 0), "left_knee": (0.1, 0.53, 0), "left_ankle": (0.1, 0.08, 0), "spine": (0, 1.22, 0),
    "thorax": (0, 1.46, 0), "neck": (0, 1.56, 0.04), "head": (0, 1.68, 0.04), "left_shoulder": (0.18, 1.42, 0),
    "left_elbow": (0.18, 1.13, 0), "left_wrist": (0.18, 0.88, 0), "right_shoulder": (-0.18, 1.42, 0),
    "right_elbow": (-0.18, 1.13, 0), "right_wrist": (-0.18, 0.88, 0),
}  # fmt: skip
UPPER = ["pelvis", "right_hip", "left_hip", *(name for name in STANDING if not name.endswith(("knee", "ankle", "hip")))]


def standing(times):
    """(T, 17, 3) m, facing +z, left is +x."""
    return np.tile(np.array([STANDING[name] for name in H36M17.names], float), (len(times), 1, 1))


def move(joints, names, offset):
    """Add (T, 3) to some joints."""
    rows = [H36M17.index(name) for name in dict.fromkeys(names)]
    joints[:, rows] += offset[:, None]


def bend_knees(joints):
    """Put the knees where hip and ankle leave them, in front."""
    for side in ("left", "right"):
        hip, ankle = joints[:, H36M17.index(f"{side}_hip")], joints[:, H36M17.index(f"{side}_ankle")]
        half = (ankle - hip) / 2
        out = np.sqrt(np.maximum(THIGH**2 - (half**2).sum(axis=1), 0))[:, None]
        ahead = np.cross(half, [1.0, 0, 0])
        joints[:, H36M17.index(f"{side}_knee")] = hip + half + out * ahead / np.linalg.norm(ahead, axis=1)[:, None]


def motion(times, joints, sigma=20.0):
    return Motion(times, joints, np.full(joints.shape[:2], sigma))


def walk(seconds=6.0, rate=30.0, step_s=0.55, step_m=0.65):
    """A walk along +z. Returns the motion and the moments at which left and right ankle are farthest ahead."""
    times = np.arange(0, seconds, 1 / rate)
    joints = standing(times)
    speed = step_m / step_s
    zero = np.zeros_like(times)
    joints[..., 2] += (speed * times)[:, None]
    farthest = {}
    for side, phase in (("left", 0.0), ("right", np.pi)):
        share = (times / (2 * step_s) + phase / (2 * np.pi)) % 1  # 0 to 0.5: the foot stands
        swing = step_m / 2 * np.where(share < 0.5, 1 - 4 * share, -np.cos(2 * np.pi * (share - 0.5)))
        lift = 0.08 * np.maximum(-np.sin(2 * np.pi * share), 0)
        move(joints, [f"{side}_ankle"], np.stack([zero, lift, swing], axis=1))
        ends = (2 * np.pi * np.arange(-1, 40) - phase) * step_s / np.pi
        farthest[side] = ends[(ends > 0.05) & (ends < times[-1] - 0.05)]
    bend_knees(joints)
    return motion(times, joints), farthest


def squats(count=4, period=3.0, depth=0.4, rate=30.0, rest=1.0):
    """Squats with pauses. Returns the motion and the moments at which each begins."""
    times = np.arange(0, rest + count * (period + rest), 1 / rate)
    joints = standing(times)
    starts = rest + np.arange(count) * (period + rest)
    sink = np.zeros_like(times)
    for start in starts:
        inside = (times >= start) & (times <= start + period)
        sink[inside] = depth * (1 - np.cos(2 * np.pi * (times[inside] - start) / period)) / 2
    zero = np.zeros_like(times)
    move(joints, UPPER, np.stack([zero, -sink, zero], axis=1))
    bend_knees(joints)
    return motion(times, joints), starts


def jump(height=0.3, rate=60.0):
    """One jump of a known rise of the pelvis after takeoff. Returns the motion, takeoff and landing."""
    times = np.arange(0, 4, 1 / rate)
    joints = standing(times)
    flight = np.sqrt(8 * height / 9.81)
    takeoff, landing = 2.0, 2.0 + flight
    sink = np.zeros_like(times)
    for start, end in ((1.2, takeoff), (landing, landing + 0.8)):
        inside = (times > start) & (times < end)
        sink[inside] = 0.2 * np.sin(np.pi * (times[inside] - start) / (end - start)) ** 2
    flying = (times >= takeoff) & (times <= landing)
    rise = np.where(flying, 9.81 / 2 * (times - takeoff) * (landing - times), 0.0)
    zero = np.zeros_like(times)
    move(joints, UPPER, np.stack([zero, rise - sink, zero], axis=1))
    move(joints, ["left_ankle", "right_ankle"], np.stack([zero, rise, zero], axis=1))
    bend_knees(joints)
    return motion(times, joints), takeoff, landing


def run(seconds=4.0, rate=30.0, step_s=0.36, step_m=1.1, flight_s=0.12):
    """A run along +z: the pelvis is lowest over the standing leg. Returns the motion and the strikes of both feet."""
    times = np.arange(0, seconds, 1 / rate)
    joints = standing(times)
    zero = np.zeros_like(times)
    bounce = 0.04 * np.cos(2 * np.pi * (times + flight_s / 2) / step_s)  # highest in the middle of the flight
    joints[..., 2] += (step_m / step_s * times)[:, None]
    move(joints, UPPER, np.stack([zero, bounce - 0.12, zero], axis=1))
    strikes = {}
    for side, phase in (("left", 0.0), ("right", 0.5)):
        share = (times + RUN_STRIKE_SHIFT_S) / (2 * step_s) + phase
        move(joints, [f"{side}_ankle"], np.stack([zero, zero, 0.4 * np.cos(2 * np.pi * share)], axis=1))
        lift = 0.3 * np.maximum(-np.sin(2 * np.pi * share), 0)
        move(joints, [f"{side}_ankle"], np.stack([zero, lift, zero], axis=1))
        found = 2 * step_s * (np.arange(-2, 40) - phase)
        strikes[side] = found[(found > 0.15) & (found < times[-1] - 0.15)]
    bend_knees(joints)
    return motion(times, joints), strikes


def throw(height=1.5, reach=(0.25, -0.45, 0.55), rate=60.0, forward_s=0.22):
    """The right hand goes to the back and fast forwards. Returns the motion, and the times of its back and release."""
    times = np.arange(0, 4, 1 / rate)
    joints = standing(times)
    front, back, end = reach
    at_back = 2.0
    wind_up = (1 - np.cos(np.pi * np.clip((times - 1.0) / (at_back - 1.0), 0, 1))) / 2
    forward = (1 - np.cos(np.pi * np.clip((times - at_back) / forward_s, 0, 1))) / 2
    along = front + (back - front) * wind_up + (end - back) * forward
    shoulder, hand = np.array(STANDING["right_shoulder"]), np.zeros((len(times), 3))
    hand[:] = (-0.3, height, 0.0)
    hand[:, 2] = along
    joints[:, H36M17.index("right_wrist")] = hand
    joints[:, H36M17.index("right_elbow")] = (hand + shoulder) / 2 + [-0.05, 0.0, 0.0]
    return motion(times, joints), at_back, at_back + forward_s / 2


def lean(joints, degrees):
    """Turn trunk, head and arms forwards around the hips by (T,) degrees."""
    rows = [H36M17.index(name) for name in UPPER if not name.endswith(("pelvis", "hip"))]
    hips = joints[:, :1]
    angle = np.radians(degrees)[:, None]
    up, ahead = (joints[:, rows] - hips)[..., 1], (joints[:, rows] - hips)[..., 2]
    turned = np.stack([up * np.cos(angle) - ahead * np.sin(angle), up * np.sin(angle) + ahead * np.cos(angle)], axis=-1)
    joints[:, rows, 1:] = hips[..., 1:] + turned


def exercise(kind, count=3, period=3.0, rate=30.0):
    """Repetitions of a 'hip hinge', a 'lunge' with the left foot or a 'push-up'."""
    times = np.arange(0, 1 + count * (period + 1), 1 / rate)
    since = (times - 1) % (period + 1)
    share = np.where((times >= 1) & (since < period), (1 - np.cos(2 * np.pi * since / period)) / 2, 0.0)
    joints, zero = standing(times), np.zeros_like(times)
    if kind == "hip hinge":
        move(joints, UPPER, np.stack([zero, -0.1 * share, -0.25 * share], axis=1))
        lean(joints, 75 * share)
        bend_knees(joints)
    elif kind == "lunge":
        move(joints, ["left_ankle"], np.stack([zero, zero, 0.8 * share], axis=1))
        move(joints, UPPER, np.stack([zero, -0.4 * share, 0.4 * share], axis=1))
        bend_knees(joints)
    else:
        along, up = joints[..., 1].copy(), joints[..., 2].copy()
        joints[..., 1], joints[..., 2] = 0.5 - up, along  # prone, head ahead
        sink = 0.25 * share
        for side, sign in (("left", 1), ("right", -1)):
            hand = np.stack([zero + sign * 0.2, zero, zero + 1.42], axis=1)
            shoulder = joints[:, H36M17.index(f"{side}_shoulder")] - np.stack([zero, sink, zero], axis=1)
            half = (hand - shoulder) / 2
            out = np.sqrt(np.maximum(0.27**2 - (half**2).sum(axis=1), 0))
            joints[:, H36M17.index(f"{side}_elbow")] = shoulder + half + np.stack([sign * out, zero, zero], axis=1)
            joints[:, H36M17.index(f"{side}_wrist")] = hand
        rest = [name for name in STANDING if not name.endswith(("elbow", "wrist"))]
        for name in rest:
            height = (joints[0, H36M17.index(name), 2] + 0.1) / 1.5
            move(joints, [name], np.stack([zero, -sink * min(height, 1.0), zero], axis=1))
    return motion(times, joints)


def write(path, motions, *, world=True, heights=None, partial=()):
    """The poses.npz of people who are all seen at the times of the first. motions: by id. partial: frames in which
    no person is fully visible.
    """
    times = next(iter(motions.values())).times
    info = replace(run_info(H36M17), world=WorldInfo(WORLD, heights or {}) if world else None)
    with NpzWriter(path, info) as writer:
        for frame, time in enumerate(times):
            n = len(motions)
            joints = np.stack([one.joints[min(frame, len(one.times) - 1)] for one in motions.values()])
            camera = WORLD.to_camera(joints).astype(np.float32)
            seen = People(
                frame, float(time), np.array(list(motions), np.int64), np.zeros((n, 4), np.float32),
                np.ones(n, np.float32), np.full((n, 17, 2), 50, np.float32), np.full((n, 17), 0.9, np.float32),
            )  # fmt: skip
            unknown = np.full(n, np.nan, np.float32)
            placed = Placed(
                joints.astype(np.float32),
                unknown,
                np.zeros((n, 2), np.float32),
                np.zeros(n, bool),
                unknown,
                np.zeros(n, bool),
                np.full(n, frame in partial),
                np.zeros((n, 4), bool),
            )
            poses = Poses3D(camera - camera[:, :1], camera[:, 0], np.full((n, 17), 30.0, np.float32))
            writer.write(FrameResult(seen, poses, placed if world else None))
    return path
