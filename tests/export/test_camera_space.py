"""The note on the camera frame in exported files."""

from pose.body.space import camera_space


def test_note_names_the_option_only_if_the_result_has_a_world():
    assert camera_space("").note.endswith("--space world aligns it")
    note = camera_space("the camera's motion is translating, so the result has no world").note
    assert "--space" not in note
    assert note.endswith("the camera's motion is translating, so the result has no world")
