"""Comparison of result files: numbers within a tolerance, everything else equal. It imports nothing of this project."""

import base64
import json
import re
from collections.abc import Callable, Collection
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-6  # absolute and relative
# Share of the pixels of a frame that may differ by more than so many of 255 levels, where the bytes of a video differ.
PIXELS, LEVELS = 1e-4, 16
# Volatile parts of texts: the version, the duration of a run.
VOLATILE = re.compile(r"(?<=pose-run )\d+\.\d+[\w.]*|took [\d.]+ s(?: \([^)]*\))?")
# Volatile entries of the record of pose-batch: version, times, and hashes of settings and files.
VOLATILE_KEYS = ("version", "date", "seconds", "signature", "key", "job")
# A number in a text; not the digits of a name, a hash or base64.
NUMBER = re.compile(r"(?<![\w+/])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w+/])")
IMAGE = re.compile(r"(?<=data:image/jpeg;base64,)[\w+/=]+")

Report = list[str]  # differences of a file, empty if it is equal within the tolerance


def differences(expected: Any, actual: Any, place: str = "") -> Report:
    """Compare plain values as of JSON; numbers within the tolerance."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = [f"{place}/{key}: {'missing' if key in expected else 'new'}" for key in expected.keys() ^ actual.keys()]
        both = [key for key in expected if key in actual]
        return sorted(found) + [
            line for key in both for line in differences(expected[key], actual[key], f"{place}/{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{place}: {len(actual)} entries instead of {len(expected)}"]
        pairs = enumerate(zip(expected, actual, strict=True))
        return [line for index, (one, other) in pairs for line in differences(one, other, f"{place}/{index}")]
    if isinstance(expected, str) and isinstance(actual, str):
        return text_differences(expected, actual, place)
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray):
        return array_differences(expected, actual, place)
    if float in (type(expected), type(actual)) and {type(expected), type(actual)} <= {int, float}:
        return array_differences(np.array(expected, float), np.array(actual, float), place)
    same = type(expected) is type(actual) and expected == actual
    return [] if same else [f"{place}: {shortened(actual)} instead of {shortened(expected)}"]


def array_differences(expected: np.ndarray, actual: np.ndarray, place: str) -> Report:
    if expected.dtype.kind == actual.dtype.kind == "U" and expected.ndim == actual.ndim == 0:
        return json_differences(str(expected), str(actual), place)
    kinds = [f"{array.dtype} {array.shape}" for array in (expected, actual)]
    if kinds[0] != kinds[1]:
        return [f"{place}: {kinds[1]} instead of {kinds[0]}"]
    if expected.dtype.kind not in "fc":
        changed = int((expected != actual).sum())
        return [f"{place}: {changed} of {expected.size} values differ"] if changed else []
    near = np.isclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    if near.all():
        return []
    apart = np.abs(actual.astype(complex) - expected)[~near]
    return [f"{place}: {(~near).sum()} of {near.size} numbers differ, by up to {np.nanmax([*apart, 0]):.3g}"]


def text_differences(expected: str, actual: str, place: str) -> Report:
    """Compare token by token: numbers within the tolerance, what is between them exactly."""
    expected, actual = VOLATILE.sub("*", expected), VOLATILE.sub("*", actual)
    if expected == actual:
        return []
    rows = zip_longest(expected.split("\n"), actual.split("\n"))
    changed = [(number, pair) for number, pair in enumerate(rows, 1) if pair[0] != pair[1] and not near_lines(*pair)]
    if not changed:
        return []
    number, (one, other) = changed[0]
    line = f" line {number}:" if "\n" in expected else ""
    more = f" ({len(changed)} lines differ)" if len(changed) > 1 else ""
    return [f"{place}:{line} {shortened(other)} instead of {shortened(one)}{more}"]


def near_lines(expected: str | None, actual: str | None) -> bool:
    if expected is None or actual is None or NUMBER.split(expected) != NUMBER.split(actual):
        return False
    return all(near_numbers(*pair) for pair in zip(NUMBER.findall(expected), NUMBER.findall(actual), strict=True))


def near_numbers(expected: str, actual: str) -> bool:
    """Whether the texts of two numbers agree; whole numbers must be equal."""
    if expected == actual:
        return True
    if not {".", "e", "E"} & {*expected, *actual}:
        return False
    return abs(float(expected) - float(actual)) <= TOLERANCE * (1 + abs(float(expected)))


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def json_differences(expected: str, actual: str, place: str = "") -> Report:
    """Compare texts as JSON if they are JSON, else as texts."""
    try:
        values = json.loads(expected), json.loads(actual)
    except ValueError:
        return text_differences(expected, actual, place)
    return differences(*values, place)


def json_lines_values(path: Path) -> dict[str, Any]:
    entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {
        f"line {number}": {key: value for key, value in entry.items() if key not in VOLATILE_KEYS}
        for number, entry in enumerate(entries, 1)
    }


def npz_values(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def glb_values(path: Path) -> dict[str, Any]:
    """The description of a GLB file, and its binary parts: the numbers of accessors, the bytes of images."""
    from pygltflib import GLTF2

    gltf = GLTF2().load(str(path))
    described, data = json.loads(gltf.to_json()), gltf.binary_blob() or b""
    kinds = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
    widths = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
    values: dict[str, Any] = {}
    used: set[int] = set()

    def numbers(view_index: int, kind: int, form: str, count: int, offset: int | None) -> np.ndarray:
        view, item = gltf.bufferViews[view_index], np.dtype(kinds[kind])
        width = widths[form] * item.itemsize
        start, stride = (view.byteOffset or 0) + (offset or 0), view.byteStride or width
        used.add(view_index)
        return np.frombuffer(
            b"".join(data[start + n * stride : start + n * stride + width] for n in range(count)), item
        )

    for index, one in enumerate(gltf.accessors):
        if one.bufferView is not None:
            values[f"accessor {index}"] = numbers(
                one.bufferView, one.componentType, one.type, one.count, one.byteOffset
            )
        if (rare := one.sparse) is not None:
            rows, changed = rare.indices, rare.values
            values[f"accessor {index}, rows"] = numbers(
                rows.bufferView, rows.componentType, "SCALAR", rare.count, rows.byteOffset
            )
            values[f"accessor {index}, changed"] = numbers(
                changed.bufferView, one.componentType, one.type, rare.count, changed.byteOffset
            )
    for index, view in enumerate(gltf.bufferViews):
        if index not in used:
            start = view.byteOffset or 0
            values[f"buffer view {index}"] = np.frombuffer(data[start : start + view.byteLength], np.uint8)
    return {"description": described, **values}


def c3d_values(path: Path) -> dict[str, Any]:
    import ezc3d

    file = ezc3d.c3d(str(path))
    header = {key: dict(group) for key, group in file["header"].items()}
    parameters = {
        f"{group}:{name}": parameter["value"]
        for group, entries in file["parameters"].items()
        for name, parameter in entries.items()
        if isinstance(parameter, dict) and "value" in parameter
    }
    return plain({"header": header, "parameters": parameters, "points": file["data"]["points"]})


def plain(value: Any) -> Any:
    """Turn scalars of NumPy and tuples into Python's."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def parquet_values(path: Path) -> dict[str, Any]:
    from pyarrow.parquet import read_table

    table = read_table(path)
    return {
        "schema": str(table.schema.remove_metadata()),
        **{name: column_values(table[name]) for name in table.column_names},
    }


def column_values(column: Any) -> Any:
    """Numbers of an Arrow column as an array with NaN for null, other columns as a list."""
    from pyarrow import types

    if types.is_floating(column.type) or types.is_integer(column.type):
        return column.to_numpy()
    return column.to_pylist()


def rrd_values(path: Path) -> dict[str, Any]:
    """Columns of a recording by entity, without row ids and times of writing; the division into chunks varies."""
    from rerun.chunk import RrdReader

    parts: dict[str, list[tuple[int, np.ndarray]]] = {}
    for chunk in RrdReader(str(path)).stream().to_chunks():
        batch = chunk.to_record_batch()
        names = [
            name for name in batch.schema.names if not name.endswith(("RowId", "log_time", "log_tick", "start_time"))
        ]
        start = batch.column("video").to_numpy(zero_copy_only=False)[0].astype(int) if "video" in names else -1
        for name in names:
            parts.setdefault(f"{chunk.entity_path} {name}", []).append((int(start), flattened(batch.column(name))))
    ordered = {name: sorted(arrays, key=lambda part: part[0]) for name, arrays in parts.items()}
    return {name: np.concatenate([array for _, array in arrays]) for name, arrays in ordered.items()}


def flattened(column: Any) -> np.ndarray:
    """The values of nested lists as one array."""
    while "list" in str(column.type):
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False)


def changed_pixels(expected: np.ndarray, actual: np.ndarray) -> float:
    """Share of the pixels that differ by more than the tolerance."""
    return float((np.abs(expected.astype(np.int16) - actual).max(axis=2) > LEVELS).mean())


def image_differences(expected: bytes, actual: bytes) -> Report:
    import cv2

    images = [cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR) for content in (expected, actual)]
    if images[0].shape != images[1].shape:
        return [": an image of another size"]
    changed = changed_pixels(*images)
    return [f": {changed:.2%} of the pixels of an image differ"] if changed > PIXELS else []


def image_file_differences(expected: Path, actual: Path) -> Report:
    return image_differences(expected.read_bytes(), actual.read_bytes())


def page_differences(expected: str, actual: str, place: str) -> Report:
    """Compare HTML: its images by their pixels, the rest as text."""
    images = [map(base64.b64decode, IMAGE.findall(page)) for page in (expected, actual)]
    found = text_differences(IMAGE.sub("image", expected), IMAGE.sub("image", actual), place)
    return found or [line for pair in zip(*images, strict=True) for line in image_differences(*pair)]


def video_differences(expected: Path, actual: Path) -> Report:
    """Compare decoded frames and their times."""
    import av

    with av.open(str(expected)) as one, av.open(str(actual)) as other:
        for number, (frame, new) in enumerate(zip_longest(one.decode(video=0), other.decode(video=0))):
            if frame is None or new is None:
                return [f": {'more' if frame is None else 'fewer'} frames, {number} in common"]
            images = [image.to_ndarray(format="rgb24") for image in (frame, new)]
            if frame.pts != new.pts or images[0].shape != images[1].shape:
                return [f": frame {number} has another time or size"]
            changed = changed_pixels(*images)
            if changed > PIXELS:
                return [f": {changed:.2%} of the pixels of frame {number} differ"]
    return []


def read(reader: Callable[[Path], Any], expected: Path, actual: Path) -> Report:
    return differences(reader(expected), reader(actual))


def texts(expected: Path, actual: Path, compare: Callable[[str, str, str], Report]) -> Report:
    return compare(expected.read_text(encoding="utf-8"), actual.read_text(encoding="utf-8"), "")


COMPARISONS: dict[str, Callable[[Path, Path], Report]] = {
    ".npz": partial(read, npz_values),
    ".glb": partial(read, glb_values),
    ".c3d": partial(read, c3d_values),
    ".parquet": partial(read, parquet_values),
    ".rrd": partial(read, rrd_values),
    ".jsonl": partial(read, json_lines_values),
    ".jpg": image_file_differences,
    ".mp4": video_differences,
    ".html": partial(texts, compare=page_differences),
    ".json": partial(texts, compare=json_differences),
    **dict.fromkeys(
        (".bvh", ".csv", ".mot", ".osim", ".sto", ".trc", ".txt", ".xml"),
        partial(texts, compare=text_differences),
    ),
}


def visible_files(folder: Path) -> set[Path]:
    """All files but hidden ones, which are records of the commands: hashes of results, caches, locks."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return {path for path in paths if not any(part.startswith(".") for part in path.parts)}


def compare_folders(expected: Path, actual: Path, cases: Collection[str] | None = None) -> int:
    """Print a line for each file that differs and a closing line; return 0 if all are equal, else 1.

    Args:
        expected: Folder of the frozen results.
        actual: Folder of the new ones.
        cases: Names of the folders in it to compare, and of the texts NAME.txt beside them; default: all.
    """
    files = [
        {path for path in visible_files(folder) if cases is None or path.parts[0].removesuffix(".txt") in cases}
        for folder in (expected, actual)
    ]
    failed = [(path, [": missing"]) for path in files[0] - files[1]]
    failed += [(path, [": new"]) for path in files[1] - files[0]]
    size = near = 0
    for path in sorted(files[0] & files[1]):
        content = (expected / path).read_bytes()
        size += len(content)
        if content == (actual / path).read_bytes():
            continue
        compare = COMPARISONS.get(path.suffix)
        found = compare(expected / path, actual / path) if compare else [": bytes differ"]
        near += not found
        failed += [(path, found)] if found else []
    for path, found in sorted(failed):
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        print(f"{path}{found[0]}{more}" if found[0].startswith(":") else f"{path}: {found[0]}{more}")
    equal = len(files[0] & files[1]) - sum(found[0] not in (": missing", ": new") for _, found in failed)
    print(f"{equal} files equal ({size} bytes, {near} within {TOLERANCE:g}), {len(failed)} different")
    return 1 if failed else 0
