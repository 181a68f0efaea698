"""Files of sensors: each layout that is read, and damaged ones."""

import json
import zipfile

import numpy as np
import pytest
from synthetic_walk import walk

from pose.body.imu import is_imu_file, read_imus
from pose.errors import PoseError

ROWS = 200


@pytest.fixture(scope="module")
def truth():
    recording, *_ = walk(0.3, seconds=4.0)
    return recording


def write_xio(truth, folder):
    for at, sensor in enumerate(truth.sensors):
        own = folder / f"device {at}"
        own.mkdir(parents=True)
        table = np.column_stack([np.round(sensor.times * 1e6), sensor.orientation])
        np.savetxt(own / "Quaternion.csv", table, delimiter=",", header="Timestamp (us),W,X,Y,Z", comments="")
        name = sensor.segment.replace("thigh", "upper leg").replace("shank", "lower leg").replace("_", " ")
        (own / "Command.json").write_text(json.dumps([{"ping": {"interface": "USB", "name": name, "sn": str(at)}}]))
    return folder


def write_dot(truth, folder):
    folder.mkdir()
    for sensor in truth.sensors:
        table = np.column_stack([np.arange(len(sensor.times)), np.round(sensor.times * 1e6), sensor.orientation])
        header = "DeviceTag: DOT\nFirmware,1.0\nPacketCounter,SampleTimeFine,Quat_W,Quat_X,Quat_Y,Quat_Z"
        np.savetxt(folder / f"{sensor.segment}.csv", table, delimiter=",", header=header, comments="")
    return folder


def write_phones(truth, folder):
    for sensor in truth.sensors:
        own = folder / sensor.segment
        own.mkdir(parents=True)
        table = np.column_stack([sensor.times, sensor.times, sensor.orientation[:, [3, 2, 1, 0]]])
        header = "time,seconds_elapsed,qz,qy,qx,qw"
        np.savetxt(own / "Orientation.csv", table, delimiter=",", header=header, comments="")
    return folder


def write_sto(truth, folder):
    folder.mkdir()
    file = folder / "walk.sto"
    opensim = {"pelvis": "pelvis", "thigh": "femur", "shank": "tibia"}
    names = []
    for sensor in truth.sensors:
        side, _, part = sensor.segment.rpartition("_")
        names.append(f"{opensim[part]}{'_' + side[0] if side else ''}_imu")
    lines = ["DataRate=60", "DataType=Quaternion", "version=3", "endheader", "\t".join(["time", *names])]
    for at, time in enumerate(truth.sensors[0].times):
        cells = [",".join(f"{value:.9f}" for value in sensor.orientation[at]) for sensor in truth.sensors]
        lines.append("\t".join([f"{time:.6f}", *cells]))
    file.write_text("\n".join(lines) + "\n")
    return file


def write_mvnx(truth, folder):
    folder.mkdir()
    file = folder / "walk.mvnx"
    names = {
        "pelvis": "Pelvis", "left_thigh": "LeftUpperLeg", "right_thigh": "RightUpperLeg", "left_shank": "LeftLowerLeg",
        "right_shank": "RightLowerLeg",
    }  # fmt: skip
    segments = "".join(f'<segment label="{names[s.segment]}" id="{at + 1}"/>' for at, s in enumerate(truth.sensors))
    frames = [
        f'<frame time="{time * 1000:.3f}" type="normal"><orientation>'
        + " ".join(f"{value:.9f}" for sensor in truth.sensors for value in sensor.orientation[at])
        + "</orientation></frame>"
        for at, time in enumerate(truth.sensors[0].times)
    ]
    file.write_text(
        '<?xml version="1.0"?><mvnx xmlns="http://www.xsens.com/mvn/mvnx" version="4"><subject label="a">'
        f'<segments>{segments}</segments><frames segmentCount="5">{"".join(frames)}</frames></subject></mvnx>'
    )
    return file


@pytest.mark.parametrize("write", [write_xio, write_dot, write_phones, write_sto, write_mvnx])
def test_every_layout_gives_the_same_sensors(write, truth, tmp_path):
    path = write(truth, tmp_path / "sensors")
    assert is_imu_file(path)
    read = read_imus(path)
    assert [sensor.segment for sensor in read.sensors] == [sensor.segment for sensor in truth.sensors]
    times = np.arange(0.1, 3.5, 0.05)
    expected = truth.orientations(times)
    for segment, q in read.orientations(times).items():
        assert np.abs(np.einsum("ti,ti->t", q, expected[segment])).min() > 1 - 1e-6, segment


def test_zip_file_equals_its_folder(truth, tmp_path):
    folder = write_xio(truth, tmp_path / "sensors")
    with zipfile.ZipFile(tmp_path / "sensors.zip", "w") as archive:
        for file in sorted(folder.rglob("*.*")):
            archive.write(file, file.relative_to(folder))
    for ours, theirs in zip(read_imus(tmp_path / "sensors.zip").sensors, read_imus(folder).sensors, strict=True):
        np.testing.assert_array_equal(ours.orientation, theirs.orientation)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_are_refused_in_one_line(seed, truth, tmp_path):
    random = np.random.default_rng(seed)
    write = (write_xio, write_dot, write_phones, write_sto, write_mvnx)[seed % 5]
    path = write(truth, tmp_path / "sensors")
    files = sorted(path.rglob("*.*")) if path.is_dir() else [path]
    victim = files[random.integers(len(files))]
    content = bytearray(victim.read_bytes())
    kind = seed // 5 % 6
    at = int(random.integers(len(content)))
    if kind == 0:
        content = content[:at]
    elif kind == 1:
        content[at : at + 400] = random.bytes(400)
    elif kind == 2:
        content = bytearray()
    elif kind == 3:
        content = bytearray(content.replace(b"0.", b"nan,", 50))
    elif kind == 4:
        content = bytearray(content.replace(b",", b";"))
    else:
        content = content[at:] + content[:at]
    victim.write_bytes(bytes(content))
    message = ""
    try:
        assert read_imus(path).sensors
    except PoseError as error:
        message = str(error)
    assert "\n" not in message


def test_entities_of_mvnx_are_not_expanded(tmp_path):
    file = tmp_path / "bomb.mvnx"
    file.write_text('<!DOCTYPE a [<!ENTITY b "bbbb">]><mvnx xmlns="http://www.xsens.com/mvn/mvnx">&b;</mvnx>')
    with pytest.raises(PoseError, match="document type or entities"):
        read_imus(file)
