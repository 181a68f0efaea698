"""Untrusted clip lists: every line is a clip, or the call is one line."""

import codecs
import json
import os

import pytest
from hypothesis import strategies as st
from mutations import damaged, one_line, quick_and_long, try_mutations
from pose_apps.batch.clips import find_clips
from pose_apps.batch.manifest import Manifest

from pose.errors import PoseError, UsageError

NAME = "séance 1.mp4"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / NAME).touch()
    return tmp_path


def listed(folder, content: bytes) -> list[str]:
    (folder / "list.txt").write_bytes(content)
    return [clip.path for clip in find_clips([str(folder / "list.txt")], folder / "out")]


@pytest.mark.parametrize(
    "content",
    [
        NAME.encode(),
        codecs.BOM_UTF8 + NAME.encode() + b"\r\n",
        codecs.BOM_UTF16_LE + NAME.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + f"# clips\r\n{NAME}\r\n".encode("utf-16-be"),
        f"{NAME}\n".encode("utf-16-le"),
        NAME.encode("latin-1") + b"\n",
    ],
    ids=["UTF-8", "UTF-8 with BOM", "UTF-16 LE", "UTF-16 BE", "UTF-16 without BOM", "Latin-1"],
)
def test_clip_lists_in_any_encoding_are_read(folder, content):
    assert listed(folder, content) == [str(folder / NAME)]


def test_clip_names_in_undecodable_bytes_are_found(folder):
    name = os.fsencode(folder) + b"/\xff\xfe.mp4"
    open(name, "wb").close()
    assert listed(folder, b"\xff\xfe.mp4\n# so that it is no mark\n"[2:] + b"x\xff\xfe.mp4\n") != []
    assert listed(folder, b"# bytes\n\xff\xfe.mp4\n") == [os.fsdecode(name)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a\0b.mp4\n", "embedded null byte"),
        (b"x" * 100_000, "File name too long"),
        (b"list.txt\n", "the list includes itself"),
        (b"http://[bad/clip.mp4\n", "invalid URL"),
        (b"", "no clips in"),
    ],
)
def test_invalid_list_entry_gives_a_one_line_error(folder, content, said):
    with pytest.raises(UsageError, match=said) as caught:
        listed(folder, content)
    assert len(str(caught.value).replace(str(folder), "")) < 400


def test_unknown_home_and_missing_files_fail_per_clip(folder):
    assert [os.path.basename(path) for path in listed(folder, b"~nouser/a.mp4\nb.mp4\n")] == ["a.mp4", "b.mp4"]


def test_nested_lists_are_limited_in_depth(folder):
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"{number + 1}.txt\n")
    with pytest.raises(UsageError, match="lists nest more than 8 deep"):
        find_clips([str(folder / "0.txt")], folder / "out")


def test_named_pipe_is_not_read_as_a_list(folder):
    os.mkfifo(folder / "list.txt")
    assert [clip.path for clip in find_clips([str(folder / "list.txt")], folder / "out")] == [str(folder / "list.txt")]


def test_clip_folders_never_have_the_name_of_the_manifest(folder):
    (folder / "manifest.jsonl.mp4").touch()
    (folder / "Manifest-0-of-2.jsonl.mp4").touch()
    names = [clip.name for clip in find_clips([str(folder)], folder / "out")]
    assert names == ["Manifest-0-of-2.jsonl-clip", "manifest.jsonl-clip", "séance 1"]


@pytest.mark.parametrize("change", [{"name": 3}, {"outputs": [3]}, {"frames": True}, {"signature": [None]}])
def test_manifest_with_invalid_lines_is_kept_beside_the_new_one(tmp_path, change, capsys):
    lines = [{"path": "a.mp4", "name": name, "key": "0", "status": "ok"} for name in ("bad", "good")]
    content = f"{json.dumps(lines[0] | change)}\n{json.dumps(lines[1])}\n"
    (tmp_path / "manifest.jsonl").write_text(content)
    manifest = Manifest(tmp_path, None)
    assert list(manifest.lines) == ["good"]
    with manifest.writing():
        pass
    assert (tmp_path / "manifest.jsonl.kept").read_text() == content
    assert "kept as manifest.jsonl.kept" in capsys.readouterr().err


def test_manifest_that_is_a_folder_is_rejected(tmp_path):
    (tmp_path / "manifest.jsonl").mkdir()
    with pytest.raises(PoseError, match=r"manifest.jsonl: not a file"):
        Manifest(tmp_path, None)


LIST = "# clips\na.mp4\n\nséance 1.mp4\nhttp://127.0.0.1/b.mp4\nsub\n".encode()


@quick_and_long(50, 4000)
def test_damaged_clip_lists_are_read_or_rejected(tmp_path, examples):
    for name in ("a.mp4", "séance 1.mp4", "sub/c.mp4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    path = tmp_path / "list.txt"

    def check(data: st.DataObject) -> None:
        content = damaged(data, LIST)
        if any(line.lstrip().startswith((b"/", b"~", b"..")) for line in content.splitlines()):
            return  # it may mean every file of this machine, which takes long
        path.write_bytes(content)
        try:
            clips = find_clips([str(path)], tmp_path / "out")
        except PoseError as error:
            one_line(error)
            return
        names = [clip.name for clip in clips]
        assert len(set(names)) == len(names)
        assert not any(part in ("", ".", "..") for name in names for part in name.split("/"))

    path.write_bytes(LIST)
    assert len(find_clips([str(path)], tmp_path / "out")) == 4
    try_mutations(check, examples)


@pytest.mark.parametrize("content", [b"\x80" + b"9" * 400, b"\x01[a.mp4", b"\x1b[31m*"])
def test_clip_lists_that_failed_before_are_rejected(tmp_path, content):
    (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(PoseError) as caught:
        find_clips([str(tmp_path / "list.txt")], tmp_path / "out")
    one_line(caught.value)
