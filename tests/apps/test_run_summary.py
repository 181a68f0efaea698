"""The first lines of the summary of `pose-run`."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pose_apps.support.summary import Tally, report
from pose_fakes import random_result, run_info

from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands

SKELETON = run_info().skeleton


def said(tally: Tally, capsys: pytest.CaptureFixture[str], files=(), *, verbose=False) -> list[str]:
    camera = run_info().camera
    pipeline = SimpleNamespace(
        config=SimpleNamespace(max_people=10),
        fits=SimpleNamespace(line=None),
        fallback_reason=None,
        camera=lambda *_: camera,
    )
    source = SimpleNamespace(info=SimpleNamespace(fps=30.0, size=camera.size, focal_35mm=None))
    report(tally, source, pipeline, list(files), 1.0, verbose=verbose)
    return capsys.readouterr().out.splitlines()


def test_doubtful_people_are_counted_in_the_first_line(capsys):
    tally = Tally()
    tally.add(random_result(np.random.default_rng(0), 0, 3), SKELETON)
    assert "3 people; took" in said(tally, capsys)[0]
    tally.doubtful = {2}
    assert "3 people (1 doubtful); took" in said(tally, capsys)[0]


def test_detected_hands_and_faces_are_reported(capsys):
    tally = Tally()
    for index, (hands_seen, faces_seen) in enumerate([(3, 1), (0, 2)]):
        result = random_result(np.random.default_rng(index), index, 2)
        hands, faces = Hands.unknown(2), Faces.unknown(2)
        hands.scores.reshape(4, 21)[:hands_seen, 0] = 0.9
        faces.scores[:faces_seen] = 0.8
        tally.add(replace(result, people=replace(result.people, hands=hands, faces=faces)), SKELETON)
    assert len(said(tally, capsys)) == 2
    lines = said(tally, capsys, verbose=True)
    assert "hands: 38% of the hands of tracked people detected" in lines
    assert "faces: 75% of the faces of tracked people detected" in lines


def test_the_terminal_shows_two_lines_and_what_the_user_can_decide(capsys):
    """Runs printed up to nine dense lines."""
    tally, files = Tally(), [Path(f"result/{name}") for name in "abcdefg"]
    tally.add(random_result(np.random.default_rng(0), 0, 3), SKELETON)
    tally.world = ["camera motion: none", "world: gravity from standing feet"]
    first, last = said(tally, capsys, files)
    assert first.startswith("1 frame, 0.0 s of video, 3 people; took")
    assert last == "results: result/a, result/b, result/c, result/d and 3 more (--verbose)"
    tally.decisions = ["", "two solutions remain: person 1 as adult or child (--height 1:METRES decides)"]
    assert said(tally, capsys, files)[1:] == [tally.decisions[1], last]
    details = said(tally, capsys, files, verbose=True)
    assert set(tally.world) < set(details)
    assert details[-1] == f"results: {', '.join(map(str, files))}"
