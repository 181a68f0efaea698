"""XML of Qualisys, written here from known cameras, and what its points project to."""

import numpy as np
import pytest

from pose.errors import PoseError
from pose.multiview.calibration_files import read_cameras

SENSOR = (1920, 1088)
CROP = (320, 120, 1599, 959)  # left, top, right, bottom: both ends belong to the video
FOCAL, CENTRE = (1680.5, 1680.5), (955.25, 540.75)  # px of the sensor
CAMERAS = {  # position in m, what it looks at; the world has z up
    "21001": ((4.0, -3.0, 1.5), (0.0, 0.2, 1.0)),
    "21002": ((-3.5, -2.5, 2.2), (0.3, 0.0, 0.9)),
    "21003": ((0.5, 5.0, 1.8), (0.0, 0.0, 1.1)),
}


def axes(place, target):
    """(3, 3) right, up and backwards of a camera in the world, a row each."""
    back = np.subtract(place, target)
    back /= np.linalg.norm(back)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


def written(crop=CROP, distortion=(-0.045, 0.13), skew=0.0, names=tuple(CAMERAS), head="<?xml version='1.0'?>"):
    """The text that QTM would export."""
    parts = []
    for name in names:
        place, target = CAMERAS[name]
        turn = " ".join(f'r{i + 1}{j + 1}="{value:.15f}"' for (i, j), value in np.ndenumerate(axes(place, target)))
        position = " ".join(f'{axis}="{1000 * value:.6f}"' for axis, value in zip("xyz", place, strict=True))
        left, top, right, bottom = crop
        parts.append(
            f'<camera active="1" avg-residual="0.4" serial="{name}" model="Miqus Video" viewrotation="0">'
            f'<fov_video left="{left}" top="{top}" right="{right}" bottom="{bottom}"/>'
            f"<transform {position} {turn}/>"
            f'<intrinsic focallength="9.3" sensorMinU="0" sensorMaxU="{64 * (SENSOR[0] - 1)}" sensorMinV="0" '
            f'sensorMaxV="{64 * (SENSOR[1] - 1)}" focalLengthU="{64 * FOCAL[0]}" focalLengthV="{64 * FOCAL[1]}" '
            f'centerPointU="{64 * CENTRE[0]}" centerPointV="{64 * CENTRE[1]}" skew="{skew}" '
            f'radialDistortion1="{distortion[0]}" radialDistortion2="{distortion[1]}" radialDistortion3="0" '
            'tangentalDistortion1="0.0005" tangentalDistortion2="-0.0004"/></camera>'
        )
    return f'{head}<calibration type="regular"><cameras>{"".join(parts)}</cameras></calibration>'


def image_of(name, point, crop, distortion):
    """(2,) px where a camera sees a point of the world, from what the numbers of the file mean."""
    place, target = CAMERAS[name]
    right, up, back = axes(place, target) @ np.subtract(point, place)
    u, v = right / -back, -up / -back
    square = u * u + v * v
    bent = 1 + distortion[0] * square + distortion[1] * square**2
    return np.array([FOCAL[0] * u * bent + CENTRE[0] - crop[0], FOCAL[1] * v * bent + CENTRE[1] - crop[1]])


@pytest.mark.parametrize("suffix", ["xml", "txt"])
@pytest.mark.parametrize("crop", [CROP, (0, 0, SENSOR[0] - 1, SENSOR[1] - 1)])
def test_qualisys_cameras_project_points_correctly(tmp_path, suffix, crop):
    path = tmp_path / f"Calib.qca.{suffix}"
    path.write_text(written(crop))
    size = (crop[2] - crop[0] + 1, crop[3] - crop[1] + 1)
    names = ["21003", "21001", "21002"]
    cameras = read_cameras(path, names, [size] * 3)
    assert cameras[0].translation == pytest.approx(np.zeros(3), abs=1e-9)
    base = np.diag([1.0, -1.0, -1.0]) @ axes(*CAMERAS[names[0]])
    for point in np.random.default_rng(0).uniform([-1, -1, 0], [1, 1, 2], (20, 3)):
        local = base @ (point - CAMERAS[names[0]][0])
        for name, camera in zip(names, cameras, strict=True):
            np.testing.assert_allclose(camera.project(local), image_of(name, point, crop, (-0.045, 0.13)), atol=1e-3)
    apart = np.linalg.norm(np.subtract(CAMERAS["21001"][0], CAMERAS["21003"][0]))
    assert np.linalg.norm(cameras[1].position) == pytest.approx(apart), "mm became m"


# Two cameras of Pose2Sim's published demo (Pose2Sim/Demo_MultiPerson/calibration/Calib.qca.txt, BSD-3-Clause): position
# in mm, r11 ... r33, focal lengths in 1/64 px, and distortion. `videos/two-people` are their images.
PUBLISHED = {
    "view-a": (
        (-3216.865867, 2231.178637, 2088.191030),
        (
            -0.74064113,
            -0.67041534,
            -0.04465415,
            0.25251118,
            -0.33931710,
            0.90614679,
            -0.62264662,
            0.65985391,
            0.42059957,
        ),
        (107622.296875, 107616.632813),
        (-0.046705, 0.137622),
    ),
    "view-b": (
        (-3758.720480, -1415.665402, 1881.794104),
        (
            0.25863314,
            -0.87509580,
            -0.40904308,
            0.49590580,
            -0.24310719,
            0.83365241,
            -0.82896703,
            -0.41845698,
            0.37108950,
        ),
        (107215.039063, 107213.070313),
        (-0.047633, 0.134667),
    ),
}


def test_published_qualisys_file_gives_its_cameras(videos, tmp_path):
    """The same cameras as `calibration.json`, which was published beside the file in OpenCV's convention."""
    parts = []
    for name, (place, turn, focal, (k1, k2)) in PUBLISHED.items():
        position = " ".join(f'{axis}="{value}"' for axis, value in zip("xyz", place, strict=True))
        rows = " ".join(f'r{1 + at // 3}{1 + at % 3}="{value}"' for at, value in enumerate(turn))
        parts.append(
            f'<camera active="1" serial="{name}"><fov_video left="0" top="0" right="1087" bottom="1919"/>'
            f'<transform {position} {rows}/><intrinsic focalLengthU="{focal[0]}" focalLengthV="{focal[1]}" '
            f'centerPointU="34816" centerPointV="61440" radialDistortion1="{k1}" radialDistortion2="{k2}"/></camera>'
        )
    path = tmp_path / "Calib.qca.txt"
    path.write_text(f"<calibration><cameras>{''.join(parts)}</cameras></calibration>")
    names, sizes = list(PUBLISHED), [(1088, 1920)] * 2
    found = read_cameras(path, names, sizes)
    expected = read_cameras(videos / "two-people" / "calibration.json", names, sizes)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.rotation, other.rotation, atol=1e-5)
        np.testing.assert_allclose(one.translation, other.translation, atol=1e-4)
        assert one.focal == pytest.approx(other.focal, abs=0.01)
        assert one.lens == other.lens


def test_qualisys_scales_to_video_size_and_skips_inactive_cameras(tmp_path):
    path = tmp_path / "calibration.xml"
    text = written((0, 0, SENSOR[0] - 1, SENSOR[1] - 1), names=("21001", "21002"))
    path.write_text(text.replace("<cameras>", '<cameras><camera active="0" serial="9"/>'))
    cameras = read_cameras(path, ["left", "right"], [(960, 544)] * 2)
    assert cameras[0].focal == pytest.approx(FOCAL[0] / 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not XML"),
        ("21001 1 2 3", "not XML"),
        ("<calibration><cameras/></calibration>", "contains no camera"),
        ('<calibration><camera active="0"/></calibration>', "contains no camera"),
        ('<calibration><cameras><camera serial="left"/></cameras></calibration>', "'transform' is missing"),
        (written(skew=2.0), "skew is not supported"),
        (written().replace('r11="', 'r11="2" old="'), "R is not a rotation matrix"),
        (written().replace('x="', 'x="nan" old="'), "x is not a finite number"),
        (written(head='<!DOCTYPE a [<!ENTITY b "c">]>'), "document type definition"),
        (written((0, 0, 1087, 1919)), "is for 1088 x 1920 px, but its video has 1280 x 840; neither"),
    ],
)
def test_invalid_qualisys_file_gives_a_one_line_error(tmp_path, text, message):
    path = tmp_path / "calibration.xml"
    path.write_text(text)
    with pytest.raises(PoseError, match=message) as caught:
        read_cameras(path, list(CAMERAS), [(1280, 840)] * 3)
    assert "\n" not in str(caught.value)
