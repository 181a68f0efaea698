"""Checkpoints whose bytes are changed anywhere are read or one line."""

from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations

from pose.errors import PoseError
from pose.lifting.checkpoint import load_checkpoint

WORDS = [b"null", b"-1", b"1e99", b"999999999999", b'"', b"{", b"[[[[", b"NaN", b"true", b"\\u0000"]


def _load(tiny_lifter, tmp_path, data) -> None:
    content = bytearray(tiny_lifter.read_bytes())
    head = 8 + int.from_bytes(content[:8], "little")  # bytes: its length, and the JSON that says what there is
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, head - 1) | st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["byte", "word", "cut"])):
            case "byte":
                content[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
            case "word":  # of the same length, so that the rest stays in its place
                word = data.draw(st.sampled_from(WORDS))
                content[place : place + len(word)] = word
            case "cut" if place > 0:
                del content[place:]
        if not content:
            return
        head = min(head, len(content))
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    try:
        load_checkpoint(path)
    except PoseError as error:
        said = str(error).removeprefix(f"{path}: ")
    else:
        said = ""
    assert "\n" not in said
    assert len(said) < 400


@quick_and_long(30, 3000)
def test_mutated_checkpoints_are_read_or_one_line(tiny_lifter, tmp_path, examples):
    try_mutations(lambda data: _load(tiny_lifter, tmp_path, data), examples)
