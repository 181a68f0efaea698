"""Containers from untrusted sources: every kind of damage and malice is one line, in bounded memory and time."""

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pose.errors import PoseError
from pose.utils import archives
from pose.utils.archives import format_names, load_array, open_archive, open_arrays


def npy(header: bytes, content: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + length + header + content


def header(shape: str, descr: str = "'<f8'") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()


def zipped(path: Path, content: bytes, name: str = "a.npy", method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)
    return path


def changed(path: Path, offset: int, content: bytes) -> Path:
    """With other bytes in the member's local header and, for the same field, in the central directory."""
    data = bytearray(path.read_bytes())
    central = data.rindex(b"PK\x01\x02")
    data[offset : offset + len(content)] = content
    data[central + offset + 2 : central + offset + 2 + len(content)] = content
    path.write_bytes(bytes(data))
    return path


def read_all(path: Path) -> dict[str, np.ndarray]:
    with open_arrays(path) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_like_numpy(tmp_path, save, rng):
    arrays = {
        "text": np.array("coco17"), "names": np.array(["a", "bcd"]), "bytes": np.array(b"x"), "truth": np.array(True),
        "numbers": rng.normal(size=(7, 3, 2)), "fortran": np.asfortranarray(rng.normal(size=(40, 500))),
        "none": np.zeros((0, 17, 3), np.float32), "times": np.arange(5), "large": rng.integers(0, 9, (300, 100)),
    }  # fmt: skip
    save(tmp_path / "a.npz", **arrays)
    with np.load(tmp_path / "a.npz") as known, open_arrays(tmp_path / "a.npz") as ours:
        assert set(ours) == set(known.files)
        for name in known.files:
            for array in (ours[name], ours.mapped(name)):
                assert (array.dtype, array.shape) == (known[name].dtype, known[name].shape)
                np.testing.assert_array_equal(array, known[name])
            assert ours[name].flags.writeable
        assert isinstance(ours.mapped("large"), np.memmap) == (save is np.savez)
    np.save(tmp_path / "a.npy", arrays["numbers"])
    np.testing.assert_array_equal(load_array(tmp_path / "a.npy"), arrays["numbers"])


WRONG_ARRAYS = {
    "promises 100 GB": npy(header("(100000000000,)")),
    "promises more than can be counted": npy(header("(" + "9" * 300 + ", 9)")),
    "is negative": npy(header("(-1, 5)")),
    "has no whole number": npy(header("(1.5,)")),
    "has truth for a number": npy(header("(True,)"), bytes(8)),
    "is empty in one direction and endless in another": npy(header("(0, " + "9" * 40 + ")")),
    "nests deeply": npy(b"(" * 9000),
    "nests deeply behind signs": npy(b"-" * 9000 + b"1"),
    "has a header without an end": npy(b"{" + b"'a':" * 2000),
    "has a very long header": npy(b" " * 60000),
    "has a header that is larger than the file": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{}",
    "has another version": npy(header("(1,)"), bytes(8), (9, 9)),
    "is pickled": npy(header("(1,)", "'|O'"), b"cos\nsystem\n(S'echo'\ntR."),
    "is structured": npy(header("(1,)", "[('a', '<f8')]"), bytes(8)),
    "has no size": npy(header("(99999999999,)", "'<U0'")),
    "has no known type": npy(header("(1,)", "'<q99'"), bytes(8)),
    "is cut short": npy(header("(3,)"), bytes(8)),
    "is nothing": b"",
    "is no array": b"hello",
}


@pytest.mark.parametrize("content", WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
@pytest.mark.filterwarnings("error")
def test_invalid_arrays_give_a_one_line_error(tmp_path, content):
    tracemalloc.start()
    for read in (
        lambda: read_all(zipped(tmp_path / "a.npz", content)),
        lambda: read_all(zipped(tmp_path / "b.npz", content, method=zipfile.ZIP_STORED)),
        lambda: load_array(_written(tmp_path / "c.npy", content)),
    ):
        with pytest.raises(PoseError) as error:
            read()
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 400 + len(str(tmp_path))
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_zip_bomb_is_rejected_before_unpacking(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "ALLOWED_BYTES", 16 << 20)
    path = tmp_path / "bomb.npz"
    zeros = bytes(1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        member.write(npy(header(f"({24 << 17},)")))
        for _ in range(24):
            member.write(zeros)
    assert path.stat().st_size < 1e6
    tracemalloc.start()
    with pytest.raises(PoseError, match=r"bomb\.npz: unpacks to more than 50 times its size and 16 MiB"):
        read_all(path)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_small_zip_bombs_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "ALLOWED_BYTES", 1 << 20)
    array = io.BytesIO()
    np.save(array, np.zeros(1 << 15))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(f"{number}.npy", array.getvalue())
    with pytest.raises(PoseError, match="unpacks to more"):
        read_all(tmp_path / "a.npz")


def test_understated_size_is_damage(tmp_path):
    array = io.BytesIO()
    np.save(array, np.zeros(1000))
    for size in (0, 100):
        path = changed(zipped(tmp_path / f"{size}.npz", array.getvalue()), 22, struct.pack("<I", size))
        with pytest.raises(PoseError):
            read_all(path)


def test_unsupported_and_damaged_archives_are_named(tmp_path):
    array = io.BytesIO()
    np.save(array, np.random.default_rng(0).normal(size=1000))
    whole = array.getvalue()
    cases = {
        "uses an unsupported compression method (12)": zipped(tmp_path / "1.npz", whole, method=zipfile.ZIP_BZIP2),
        "uses an unsupported compression method (99)": changed(zipped(tmp_path / "2.npz", whole), 8, b"\x63"),
        "is encrypted": changed(zipped(tmp_path / "3.npz", whole), 6, b"\x01"),
        "damaged": _spoilt(zipped(tmp_path / "4.npz", whole), 2000),
        "not a ZIP file, or a damaged one (Bad CRC-32": _spoilt(
            zipped(tmp_path / "5.npz", whole, method=zipfile.ZIP_STORED), 2000
        ),
        "contains a single array": _written(tmp_path / "6.npz", whole),
        "not a readable .npz file": _written(tmp_path / "7.npz", zipped(tmp_path / "8", whole).read_bytes()[:-40]),
        "No such file": tmp_path / "absent.npz",
        "Is a directory": tmp_path,
    }
    for said, path in cases.items():
        with pytest.raises(PoseError) as error:
            read_all(path)
        assert said in str(error.value)
        assert str(error.value).startswith(f"{path}: ")


def _spoilt(path: Path, place: int) -> Path:
    data = bytearray(path.read_bytes())
    data[place : place + 60] = bytes(byte ^ 0xFF for byte in data[place : place + 60])
    path.write_bytes(bytes(data))
    return path


def test_archive_names_are_never_paths(tmp_path):
    (tmp_path / "inside").mkdir()
    path = zipped(tmp_path / "inside" / "a.zip", b"content", "../outside.txt")
    with open_archive(path) as archive:
        assert archive.read("../outside.txt") == b"content"
    assert [file.name for file in tmp_path.rglob("*")] == ["inside", "a.zip"]


def test_member_lists_in_messages_are_short():
    assert format_names([]) == "nothing"
    assert format_names(["a", "b"]) == "a, b"
    assert format_names(str(number) for number in range(10**5)) == "0, 1, 2, 3, 4, 5, 6, 7, ..."
    assert len(format_names(["x" * 10**6])) < 50
