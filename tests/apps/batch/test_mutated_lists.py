"""Clip lists and manifests of which bytes and values are changed: read, or refused in one line."""

import pytest
from hypothesis import strategies as st
from mutations import damaged, one_line, quick_and_long, try_mutations
from pose_apps.batch.clips import find_clips

from pose.errors import PoseError

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
