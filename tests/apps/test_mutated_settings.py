"""Settings of which lines and words are changed are taken or one line."""

import contextlib
import io

from hypothesis import strategies as st
from mutations import quick_and_long, try_mutations
from pose_apps.run import main

from pose.config import preset_text

WORDS = [
    ".inf",
    ".nan",
    "1e999",
    "[",
    "{",
    "*a",
    "&a",
    "!!python/object:os.system",
    "null",
    "-1",
    "'",
    "yes",
    "%",
    "\t",
]


def _call(tmp_path, data) -> None:
    lines = [*preset_text("fast").splitlines(), "max_people: 3", "seed: 7", "detect_every: 0.3"]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        key, _, _ = lines[place].partition(":")
        word = data.draw(st.sampled_from(WORDS) | st.text(max_size=5) | st.integers().map(str))
        lines[place] = data.draw(st.sampled_from([f"{key}: {word}", f"{word}: 1", f" {lines[place]}", word]))
    path = tmp_path / "a.yaml"
    path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        status = main(["no.mp4", "--out", str(tmp_path / "out"), "--config", str(path)])
    assert status == 2
    assert said.getvalue().startswith("error: ")
    assert said.getvalue().count("\n") == 1


@quick_and_long(15, 500)
def test_mutated_settings_are_taken_or_one_line(tmp_path, examples):
    try_mutations(lambda data: _call(tmp_path, data), examples)
