"""Passwords and tokens of addresses appear in no message and no file."""

import pytest

from pose.errors import PoseError, UsageError, without_credentials
from pose.utils.shown import shown


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("rtsp://me:SECRET@cam:554/a: no answer", "rtsp://cam:554/a: no answer"),
        ("http://h/a.mp4?token=SECRET: no such file", "http://h/a.mp4: no such file"),
        ("read 'http://h/a?t=SECRET'.", "read 'http://h/a'."),
        ("http://h/a#SECRET", "http://h/a"),
        ("http:/me:SECRET@h/x", "http:/h/x"),
        (r"http:\\me:SECRET@h:9\a.mp4?t=SECRET and C:\films\a@b.mp4", r"http:\\h:9\a.mp4 and C:\films\a@b.mp4"),
        ("rtsp://me:SECRET@one@h/x", "rtsp://h/x"),
        ("rtsp://me:SEC/RET@h/x", "rtsp://h/x"),
        ("http://u:SECRET@h/a,rtsp://u:SECRET@i/b?c=SECRET", "http://h/a,rtsp://i/b"),
        ("--video=http://SECRET@h/a", "--video=http://h/a"),
        ("http://[::1]:80/a and C:/films/a@b.mp4", "http://[::1]:80/a and C:/films/a@b.mp4"),
        ("https://github.com/@user/repository", "https://github.com/@user/repository"),
        ("12:30.mp4: no such file", "12:30.mp4: no such file"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text, safe):
    assert without_credentials(text) == safe
    assert str(UsageError(text)) == str(PoseError(text)) == shown(text) == safe
    assert "SECRET" not in repr(PoseError(text))
