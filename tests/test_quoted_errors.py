"""What libraries say reaches people as one line that is not long."""

from pose.utils.shown import in_brief


def test_a_caller_that_quotes_a_file_is_cut_short():
    said = in_brief(ValueError("damaged: " + 5000 * "x"))
    assert said.startswith("damaged: xxx")
    assert said.endswith("...")
    assert len(said) == 200


def test_what_moves_the_cursor_or_turns_text_around_is_escaped():
    assert in_brief(ValueError("key \x1b[2J\u202e\udcff")) == r"key \x1b[2J\u202e\udcff"
