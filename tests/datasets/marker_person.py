"""A made-up person with optical markers whose joint centres are known."""

import numpy as np
from pose_datasets import markers
from pose_datasets.mapping import HEAD_POINTS, POINTS
from pose_datasets.rotations import about_axis

FPS = 100.0
LEG = 0.90  # m, ASI to malleolus


def marker_person(seconds=6.0, knee=1.6, elbow=1.8, hip_off=(0.0, 0.0, 0.0)):
    """Markers (T, 39, 3) and points (T, 19, 3), m, of someone who moves; knees and elbows bend up to that (rad).

    hip_off: from where the regression puts the left hip to where it is, m (left, up, forward); mirrored on the right.
    """
    times = np.arange(int(seconds * FPS)) / FPS

    def swing(low, high, hertz, phase=0.0):
        return low + (high - low) * (0.5 - 0.5 * np.cos(2 * np.pi * hertz * times + phase))

    def at(origin, turn, *offset):
        return origin + turn @ np.array(offset, float)

    m, p = {}, {}
    pelvis = about_axis("y", swing(-0.4, 0.6, 0.15)) @ about_axis("x", swing(-0.1, 0.5, 0.2))
    origin = np.stack([swing(0, 0.4, 0.1), swing(0.6, 1.0, 0.4), swing(0, 1, 0.1)], axis=-1)
    thorax = p["thorax"] = at(origin, pelvis, 0, 0.42, -0.06)
    p["spine"] = at(origin, pelvis, 0, 0.18, -0.06)
    m["C7"], m["CLAV"] = at(thorax, pelvis, 0, 0.04, -0.06), at(thorax, pelvis, 0, -0.04, 0.06)
    m["T10"], m["STRN"] = at(p["spine"], pelvis, 0, 0.02, -0.1), at(p["spine"], pelvis, 0, -0.02, 0.1)
    m["RBAK"] = at(thorax, pelvis, -0.09, -0.1, -0.1)
    skull = at(thorax, pelvis, 0, 0.12, 0)
    head = pelvis @ about_axis("x", swing(-0.3, 0.1, 0.3))
    p |= {name: at(skull, head, *place) for name, place in HEAD_POINTS.items()}
    for side, s, sign in (("left", "L", 1), ("right", "R", -1)):
        m[s + "FHD"], m[s + "BHD"] = (at(skull, head, sign * 0.058, 0.1, z) for z in (0.085, -0.065))
        m[s + "ASI"], m[s + "PSI"] = at(origin, pelvis, sign * 0.125, 0, 0), at(origin, pelvis, sign * 0.05, 0, -0.16)

        hip = at(origin, pelvis, *((markers.hip_regression(LEG) + hip_off) * [sign, 1, 1]))
        thigh = pelvis @ about_axis("x", -swing(0, 1.4, 0.5)) @ about_axis("z", sign * swing(-0.1, 0.3, 0.3))
        shank = thigh @ about_axis("x", swing(0.05, knee, 0.5, 0.5))
        bent = at(hip, thigh, 0, -0.4, 0)
        ankle = at(bent, shank, 0, -0.4, 0)
        m[s + "KNE"], m[s + "THI"] = at(bent, thigh, sign * 0.056, 0.01, 0), at(hip, thigh, sign * 0.09, -0.2, 0.02)
        m[s + "ANK"], m[s + "TIB"] = at(ankle, shank, sign * 0.043, 0, 0), at(bent, shank, sign * 0.06, -0.2, 0.01)
        m[s + "HEE"], m[s + "TOE"] = at(ankle, shank, 0, -0.04, -0.06), at(ankle, shank, 0, -0.04, 0.15)
        p |= {f"{side}_hip": hip, f"{side}_knee": bent, f"{side}_ankle": ankle}

        shoulder, m[s + "SHO"] = at(thorax, pelvis, sign * 0.17, -0.045, 0), at(thorax, pelvis, sign * 0.17, 0, 0)
        upper = pelvis @ about_axis("z", sign * swing(0.1, 2.4, 0.35)) @ about_axis("x", swing(-0.8, 0.2, 0.3))
        fore = upper @ about_axis("x", -swing(0.02, elbow, 0.45))
        bent = at(shoulder, upper, 0, -0.29, 0)
        wrist = at(bent, fore, 0, -0.25, 0)
        m[s + "ELB"], m[s + "UPA"] = at(bent, upper, sign * 0.04, 0, 0), at(shoulder, upper, sign * 0.06, -0.15, 0)
        m[s + "WRA"], m[s + "WRB"] = at(wrist, fore, 0, 0, 0.035), at(wrist, fore, 0, 0, -0.035)
        m[s + "FRM"], m[s + "FIN"] = at(bent, fore, sign * 0.04, -0.12, 0), at(wrist, fore, 0, -0.08, 0.02)
        p |= {f"{side}_shoulder": shoulder, f"{side}_elbow": bent, f"{side}_wrist": wrist}
    p["pelvis"] = (p["left_hip"] + p["right_hip"]) / 2
    return np.stack([m[name] for name in markers.MARKERS], axis=1), np.stack([p[name] for name in POINTS], axis=1)
