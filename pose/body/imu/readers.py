"""Files of inertial sensors: x-io, OpenSense, Xsens MVN, Movella DOT and phones.

- x-io: a folder or ZIP file with one folder per sensor that contains `Quaternion.csv` (time in microseconds, w, x, y,
  z) and, for the sensor's name, `Command.json`.
- OpenSense: `.sto` with `DataType=Quaternion`: `time` in s and one column "w,x,y,z" per sensor. The earth frame is
  expected with z up, as before OpenSense's rotation to OpenSim's axes.
- Xsens MVN: `.mvnx`, orientations of the segments.
- Movella DOT: a folder or ZIP file with one CSV file per sensor, named after its segment (`SampleTimeFine` in
  microseconds, `Quat_W` and so on).
- Phones: the same with `Orientation.csv` of Sensor Logger in a folder named after the segment (`seconds_elapsed`, `qw`
  and so on).
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import numpy as np

from pose.body.imu.recording import SEGMENTS, ImuRecording, ImuSensor, sensor_of
from pose.errors import PoseError
from pose.structures.types import F64
from pose.utils.archives import open_archive
from pose.utils.json_values import items, member, read_text_file, strict_json, text
from pose.utils.shown import in_brief, shown

MAX_FILE_BYTES = 500_000_000
_MVN = "{http://www.xsens.com/mvn/mvnx}"


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns of a CSV file of one sensor."""

    time: str
    per_second: float
    quaternion: tuple[str, str, str, str]  # w, x, y, z


_LAYOUTS = (
    _Layout("timestamp (us)", 1e6, ("w", "x", "y", "z")),  # x-io
    _Layout("sampletimefine", 1e6, ("quat_w", "quat_x", "quat_y", "quat_z")),  # Movella DOT
    _Layout("seconds_elapsed", 1.0, ("qw", "qx", "qy", "qz")),  # Sensor Logger
)


def is_imu_file(path: Path) -> bool:
    """Return whether a path is that of a file, ZIP file or folder which `read_imus` reads."""
    if path.suffix.lower() in (".mvnx", ".sto"):
        return True
    if path.is_dir():
        return any(_is_sensor_file(PurePosixPath(file.relative_to(path).as_posix())) for file in path.rglob("*.csv"))
    if path.suffix.lower() != ".zip" or not path.is_file():
        return False
    with open_archive(path) as archive:
        return any(_is_sensor_file(PurePosixPath(name)) for name in archive.names)


def _is_sensor_file(path: PurePosixPath) -> bool:
    if path.suffix.lower() != ".csv":
        return False
    return path.name.lower() in ("quaternion.csv", "orientation.csv") or segment_of(path.stem) is not None


def read_imus(path: Path) -> ImuRecording:
    """Read the sensors of one person from a file, ZIP file or folder; PoseError without a usable one."""
    suffix = path.suffix.lower()
    if suffix == ".sto":
        sensors = _opensense(read_text_file(path, MAX_FILE_BYTES), str(path))
    elif suffix == ".mvnx":
        sensors = _mvnx(read_text_file(path, MAX_FILE_BYTES), str(path))
    else:
        sensors = _tables(dict(_contents(path)), str(path))
    return ImuRecording.of(sensors, str(path))


def _contents(path: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the name and content of each file that describes a sensor."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            name = PurePosixPath(file.relative_to(path).as_posix())
            if file.is_file() and (_is_sensor_file(name) or name.name.lower() == "command.json"):
                yield name, read_text_file(file, MAX_FILE_BYTES)
        return
    with open_archive(path) as archive:
        for member_name in sorted(archive.names):
            name = PurePosixPath(member_name)
            if _is_sensor_file(name) or name.name.lower() == "command.json":
                yield name, archive.read(member_name)


def _tables(files: Mapping[PurePosixPath, bytes], source: str) -> list[ImuSensor]:
    """Read one CSV file per sensor. All sensors share one clock."""
    sensors = []
    for path, content in files.items():
        if path.suffix.lower() != ".csv":
            continue
        label = f"{source}/{path}"
        in_own_folder = path.name.lower() in ("quaternion.csv", "orientation.csv")
        name = path.parent.name if in_own_folder else path.stem
        if in_own_folder and (command := files.get(path.with_name("Command.json"))) is not None:
            name = _device_name(command, f"{source}/{path.with_name('Command.json')}") or name
        segment = segment_of(name)
        if segment is None:
            raise PoseError(f"{label}: the name {shown(name)!r} is not that of a segment, such as 'left lower leg'")
        times, orientation = _table(content, label)
        sensors.append(sensor_of(segment, name, times, orientation, source))
    return sensors


def _device_name(content: bytes, label: str) -> str | None:
    """Return the name of an x-io sensor from its list of commands."""
    try:
        for command in items(strict_json(content)):
            if isinstance(command, dict) and "ping" in command:
                return text(member(command["ping"], "name"))
    except ValueError as error:
        raise PoseError(f"{label}: not a list of x-io commands ({in_brief(error)})") from error
    return None


def _table(content: bytes, label: str) -> tuple[F64, F64]:
    """Return times (N,) s and quaternions (N, 4) of a CSV file."""
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    # Movella DOT writes lines about the device above the table.
    for at, line in enumerate(lines[:50]):
        columns = [name.strip().lower() for name in next(csv.reader([line]), [])]
        for layout in _LAYOUTS:
            if {layout.time, *layout.quaternion} <= set(columns):
                wanted = [columns.index(name) for name in (layout.time, *layout.quaternion)]
                values = _numbers(lines[at + 1 :], wanted, label)
                return values[:, 0] / layout.per_second, values[:, 1:]
    names = "; ".join(", ".join((layout.time, *layout.quaternion)) for layout in _LAYOUTS)
    raise PoseError(f"{label}: no line names the columns of a time and a quaternion; expected one of: {names}")


def _numbers(lines: list[str], columns: list[int], label: str) -> F64:
    try:
        return np.loadtxt(io.StringIO("\n".join(lines)), delimiter=",", usecols=columns, ndmin=2)
    except (ValueError, IndexError) as error:
        raise PoseError(f"{label}: expected rows of numbers ({in_brief(error)})") from error


def _opensense(content: bytes, label: str) -> list[ImuSensor]:
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    end = next((at for at, line in enumerate(lines) if line.strip().lower() == "endheader"), None)
    if end is None or len(lines) < end + 3:
        raise PoseError(f"{label}: not a table of OpenSim: 'endheader' and rows are missing")
    if not any(re.fullmatch(r"datatype\s*=\s*quaternion", line.strip(), re.IGNORECASE) for line in lines[:end]):
        raise PoseError(f"{label}: expected orientations (DataType=Quaternion)")
    names = lines[end + 1].split()
    if not names or names[0] != "time":
        raise PoseError(f"{label}: the first column is not 'time'")
    rows = [line for line in lines[end + 2 :] if line.strip()]
    values = [re.split(r"[\s,]+", row.strip()) for row in rows]
    if bad := next((at for at, row in enumerate(values) if len(row) != 1 + 4 * (len(names) - 1)), None) is not None:
        raise PoseError(f"{label}: row {int(bad) + 1} does not have a time and four numbers for each sensor")
    try:
        table = np.array(values, np.float64)
    except ValueError as error:
        raise PoseError(f"{label}: expected rows of numbers ({in_brief(error)})") from error
    sensors = []
    for at, name in enumerate(names[1:]):
        if (segment := segment_of(name)) is not None:
            sensors.append(sensor_of(segment, name, table[:, 0], table[:, 1 + 4 * at : 5 + 4 * at], label))
    return sensors


def mvnx_subject(content: bytes, label: str) -> ElementTree.Element:
    """Return the element of the person of an MVNX file; PoseError if it is another, or has entities."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise PoseError(f"{label}: contains a document type or entities, which are not read")
    try:
        subject = ElementTree.fromstring(content).find(f"{_MVN}subject")
    except ElementTree.ParseError as error:
        raise PoseError(f"{label}: not an XML file ({in_brief(error)})") from error
    if subject is None:
        raise PoseError(f"{label}: not an MVNX file: the element 'subject' is missing")
    return subject


def _mvnx(content: bytes, label: str) -> list[ImuSensor]:
    """Read the segments' orientations of an MVNX file; the axes of a segment stand for those of its sensor."""
    subject = mvnx_subject(content, label)
    names = [segment.get("label", "") for segment in subject.iterfind(f"{_MVN}segments/{_MVN}segment")]
    times, rows = [], []
    for frame in subject.iterfind(f"{_MVN}frames/{_MVN}frame[@type='normal']"):
        times.append(frame.get("time", ""))
        rows.append((frame.findtext(f"{_MVN}orientation") or "").split())
    if not names or not rows or any(len(row) != 4 * len(names) for row in rows):
        raise PoseError(f"{label}: expected frames with four numbers of orientation for each of its segments")
    try:
        seconds, values = np.array(times, np.float64) / 1000, np.array(rows, np.float64)
    except ValueError as error:
        raise PoseError(f"{label}: expected frames of numbers ({in_brief(error)})") from error
    sensors: dict[str, ImuSensor] = {}
    for at, name in enumerate(names):
        # MVN divides the trunk: its sternum segment (T8) carries the sensor.
        segment = "trunk" if name == "T8" else None if name in _OTHER_MVN else segment_of(name)
        if segment is not None:
            sensors[segment] = sensor_of(segment, name, seconds, values[:, 4 * at : 4 * at + 4], label)
    return list(sensors.values())


_OTHER_MVN = ("LeftToe", "RightToe", "LeftShoulder", "RightShoulder", "Neck")


# Words of the names that programs and people give to sensors; the first match counts.
_WORDS = (
    ("foot", ("foot", "feet", "toe", "calcn", "shoe")),
    ("shank", ("shank", "lowerleg", "lleg", "tibia", "calf", "shin")),
    ("thigh", ("thigh", "upperleg", "uleg", "femur")),
    ("hand", ("hand", "palm")),
    ("forearm", ("forearm", "lowerarm", "larm", "radius", "ulna", "wrist")),
    ("upper_arm", ("upperarm", "uarm", "humerus")),
    ("head", ("head",)),
    ("trunk", ("trunk", "torso", "sternum", "chest", "thorax", "t8", "back")),
    ("pelvis", ("pelvis", "sacrum", "hip", "waist", "root")),
)
_SIDES = (("left", ("left", "l")), ("right", ("right", "r")))


def segment_of(name: str) -> str | None:
    """Return the segment that the name of a sensor, such as "tibia_r_imu" or "RightForeArm", means, or None."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
    parts = {*words, *(first + second for first, second in pairwise(words))}
    for segment, options in _WORDS:
        if parts & set(options):
            side = next((side for side, options in _SIDES if parts & set(options)), None)
            found = f"{side}_{segment}" if side else segment
            return found if found in SEGMENTS else segment if segment in SEGMENTS else None
    return None
