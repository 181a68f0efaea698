"""What libraries say reaches people as one line that is not long."""

from pose.utils.shown import in_brief


def test_long_errors_are_cut():
    said = in_brief(ValueError("damaged: " + 5000 * "x"))
    assert said.startswith("damaged: xxx")
    assert said.endswith("...")
    assert len(said) == 200


def test_control_characters_in_errors_are_escaped():
    assert in_brief(ValueError("key \x1b[2J\u202e\udcff")) == r"key \x1b[2J\u202e\udcff"
