"""Settings, clocks and messages of the web server."""

import json
import struct

import numpy as np
import pytest
from pose_fakes import seen_result

from pose.errors import UsageError
from pose.live import LiveResult
from pose.live.access import is_loopback
from pose.live.web import messages
from pose.live.web.clock import BrowserClock
from pose.live.web.messages import ProtocolError
from pose.live.web.settings import WebSettings
from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.world.upright import Upright

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_computer_needs_no_token(host):
    assert is_loopback(host)
    assert WebSettings(host=host).token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org", ""])
def test_open_network_needs_a_token(host):
    with pytest.raises(UsageError, match="--token or POSE_WEB_TOKEN is") as error:
        WebSettings(host=host)
    assert "\n" not in str(error.value)
    assert WebSettings(host=host, token=TOKEN).token == TOKEN


def test_short_token_and_half_a_certificate_are_refused(tmp_path):
    with pytest.raises(UsageError, match="--token: has 5 characters"):
        WebSettings(token="short")
    with pytest.raises(UsageError, match="must be used together"):
        WebSettings(cert="cert.pem")
    with pytest.raises(UsageError, match=r"cert\.pem: no such file"):
        WebSettings(cert=str(tmp_path / "cert.pem"), key=str(tmp_path / "key.pem"))
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("{}")
    with pytest.raises(UsageError, match=r"wrong\.pem: not a certificate and its key"):
        WebSettings(cert=str(wrong), key=str(wrong))


def test_browser_times_keep_their_spacing(rng):
    clock = BrowserClock()
    sent = np.arange(300) / 30
    arrived = 1000 + sent + rng.uniform(0.005, 0.03, 300)
    ours = np.array([clock.to_local(s, a) for s, a in zip(5 + sent, arrived, strict=True)])
    assert (np.diff(ours) > 0).all()
    assert (ours <= arrived).all()
    assert np.diff(ours)[100:] == pytest.approx(1 / 30, abs=0.004)


def live(result) -> LiveResult:
    return LiveResult(np.zeros((480, 640, 3), np.uint8), result, H36M17, 1.0, 1.04)


def test_result_message_contains_people():
    text = messages.result(live(seen_result([(0, 0, 3), (1, 0, 4)], index=7, time=0.25)), Upright(), 0.5)
    message = json.loads(text)
    assert (message["number"], message["time"], message["captured"]) == (7, 0.25, 1.0)
    first, second = message["people"]
    assert (first["id"], second["id"]) == (1, 2)
    x, y, score = first["keypoints"][0]
    assert (x, y) == pytest.approx((319.5 / 2 - 0.25, 239.5 / 2 - 0.25), abs=0.01)
    assert score == 1
    feet = [first["stage"][H36M17.index(name)][2] for name in ("left_ankle", "right_ankle")]
    assert feet == pytest.approx([0.08, 0.08], abs=0.01)
    assert second["stage"][0][1] - first["stage"][0][1] == pytest.approx(1, abs=0.01)


def test_result_message_has_lifted_sides():
    result = seen_result([(0, 0, 3)])
    result.poses.swapped[0] = [True, False]
    (person,) = json.loads(messages.result(live(result), Upright()))["people"]
    seen = result.people.keypoints[0]
    for sent, shown in (("left_knee", "right_knee"), ("right_ankle", "left_ankle"), ("left_wrist", "left_wrist")):
        assert person["keypoints"][H36M17.index(sent)][:2] == pytest.approx(seen[H36M17.index(shown)], abs=0.01)


def test_unknown_values_are_null():
    result = seen_result([(0, 0, 3), (1, 0, 4)])
    result.people.keypoints[0, 3] = np.nan
    result.poses.joints[1, 5] = np.nan
    first, second = json.loads(messages.result(live(result), Upright()))["people"]
    assert first["keypoints"][3] == [None, None, 1.0]
    assert first["stage"] is not None
    assert second["stage"] is None


def test_hello_describes_the_skeleton_once():
    message = json.loads(messages.hello("camera", "x", BLAZEPOSE33, lookahead=3, mirror=True))
    assert len(message["joints"]) == 33
    assert [edge["ends"] for edge in message["edges3d"]] == [list(edge) for edge in H36M17.edges]
    assert sum(edge["head"] for edge in message["edges3d"]) == 1
    assert message["limits"]["most"] == messages.MAX_UNANSWERED + 3  # else no client is answered while the lifter waits


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 4000, "not JSON"),
        ("[]", "object with a type"),
        ('{"type": 3}', "object with a type"),
        (" " * 5000, "longer than"),
    ],
)
def test_text_that_is_not_a_message_is_refused(text, reason):
    with pytest.raises(ProtocolError, match=reason):
        messages.parse_text(text)


@pytest.mark.parametrize("data", [b"", b"12345678", struct.pack("<d", float("nan")) + b"x"])
def test_image_needs_a_time_and_bytes(data):
    with pytest.raises(ProtocolError, match="image"):
        messages.parse_image_message(data)
