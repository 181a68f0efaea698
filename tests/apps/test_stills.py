"""`pose-run` on photos: each image by itself, of whatever size."""

import json

import av
import cv2
import numpy as np
import pytest
from command_errors import error_line
from pose_apps.batch.command import main as batch_main
from pose_apps.run import main

from pose.results import load_poses
from pose.utils.written_files import RECORD


@pytest.fixture(autouse=True)
def at_hand(weights_setting, monkeypatch) -> None:
    for name, value in weights_setting.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def photos(videos, tmp_path):
    """A dancer, the same half as large, and a wall of another form."""
    folder = tmp_path / "photos"
    folder.mkdir()
    with av.open(str(videos / "dance.mp4")) as container:
        dancer = next(container.decode(video=0)).to_ndarray(format="bgr24")
    cv2.imwrite(str(folder / "a.png"), dancer)
    cv2.imwrite(str(folder / "b.png"), cv2.resize(dancer, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))
    cv2.imwrite(str(folder / "wall.png"), np.full((120, 200, 3), 120, np.uint8))
    return folder


@pytest.fixture
def run(tiny_lifter):
    return lambda *words: main([*map(str, words), "--lifter", str(tiny_lifter)])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_images_of_different_sizes_are_processed_one_by_one(photos, run, tmp_path, capsys):
    (photos / "broken.jpg").write_text("no picture")
    out = tmp_path / "out"
    assert run(photos, "--out", out, "--verbose") == 0
    said = capsys.readouterr()
    assert "3 images, 2 people; took" in said.out
    assert "no person in 1 of 3 images" in said.out
    assert said.err.splitlines() == [
        f"warning: {photos}: images differ in size and are processed one by one, as with --stills",
        f"warning: {photos / 'broken.jpg'}: not a readable image; skipped",
    ]
    files = [f"{name}.png.{kind}" for name in ("a", "b", "wall") for kind in ("json", "npz")]
    assert names(out) == sorted([RECORD, "gallery-1.jpg", *files])
    large, small, wall = (load_poses(out / f"{name}.png.npz") for name in ("a", "b", "wall"))
    assert [len(poses) for poses in (large, small, wall)] == [1, 1, 1]
    assert [len(poses.id) for poses in (large, small, wall)] == [1, 1, 0]
    height, width = cv2.imread(str(photos / "a.png")).shape[:2]
    assert large.camera.size == (width, height)
    assert small.camera.size == (width // 2, height // 2)
    assert small.camera.matrix[0, 0] == pytest.approx(large.camera.matrix[0, 0] / 2)
    sure = (large.scores[0] > 0.5) & (small.scores[0] > 0.5)
    apart = np.linalg.norm((small.keypoints[0] + 0.5) * 2 - 0.5 - large.keypoints[0], axis=1)[sure]
    assert np.median(apart) < 0.02 * height, "the same dancer, half as large"
    assert json.loads((out / "a.png.json").read_text())["complete"]
    sheet = cv2.imread(str(out / "gallery-1.jpg"))
    assert sheet is not None
    assert sheet.std() > 20, "an empty sheet"


def test_still_result_does_not_depend_on_other_images(photos, run, tmp_path, capsys):
    assert run(photos, "--stills", "--formats", "npz", "--out", tmp_path / "all") == 0
    assert run(photos / "b.png", "--formats", "npz", "--out", tmp_path / "one") == 0
    assert names(tmp_path / "one") == [RECORD, "b.png.npz"]
    assert (tmp_path / "one" / "b.png.npz").read_bytes() == (tmp_path / "all" / "b.png.npz").read_bytes()


def test_still_has_larger_sigma_than_video(photos, tiny_lifter):
    from pose.config import PipelineConfig
    from pose.pipeline import Pipeline
    from pose.results.run import PASSES, SIGMA_FACTOR, record_still
    from pose.structures.types import Frame

    pipeline = Pipeline(PipelineConfig(lifter=str(tiny_lifter)))
    image = cv2.cvtColor(cv2.imread(str(photos / "a.png")), cv2.COLOR_BGR2RGB)
    session = pipeline.session((image.shape[1], image.shape[0]))
    people = [session.track(Frame(image, look, look / 30)) for look in range(PASSES)][-1]
    (usual,) = [*session.lift(people), *session.flush()]
    alone, info = record_still(pipeline, image, "a.png")
    assert info.settings["sigma_factor"] == SIGMA_FACTOR
    assert SIGMA_FACTOR > 1
    np.testing.assert_allclose(alone.poses.sigma, usual.poses.sigma * SIGMA_FACTOR, rtol=1e-5)
    assert (alone.index, alone.time) == (0, 0.0)


def test_existing_results_are_kept_without_overwrite(photos, run, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "b.png.npz").write_text("mine")
    assert run(photos, "--stills", "--out", out) == 2
    assert f"{out / 'b.png.npz'} exists; give --overwrite" in capsys.readouterr().err
    assert run(photos, "--stills", "--out", out, "--overwrite", "--quiet") == 0
    assert len(load_poses(out / "b.png.npz")) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{videos}/dance.mp4", "--stills"], "--stills: .*dance.mp4 is not an image"),
        (["{photos}", "--stills", "--start", "1"], "--start: not available for single images, which have no times"),
        (["{photos}/a.png", "--end", "1"], "--end: not available for single images, which have no times"),
        (["{photos}", "--stills", "--height", "1.8"], "height: not available for single images; use pose-convert"),
        (
            ["{photos}", "--stills", "--formats", "npz,bvh"],
            "bvh is not available for single images; known: json, npz, overlay",
        ),
    ],
)
def test_invalid_arguments_give_a_one_line_error(words, said, photos, videos, run, tmp_path, capsys):
    import re

    assert run(*(word.format(photos=photos, videos=videos) for word in words), "--out", tmp_path / "out") == 2
    assert re.search(said, error_line(capsys))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_folder_of_photos_is_one_clip_of_a_batch(photos, tiny_lifter, tmp_path, capsys):
    call = [str(photos), "--out", str(tmp_path / "out"), "--lifter", str(tiny_lifter), "--formats", "npz"]
    assert batch_main([*call, "--workers", "1"]) == 0
    (line,) = [json.loads(text) for text in (tmp_path / "out" / "manifest.jsonl").read_text().splitlines()]
    assert (line["name"], line["frames"], line["people"]) == ("photos", 3, 2)
    assert sorted(line["outputs"]) == [f"photos/{name}.png.npz" for name in ("a", "b", "wall")]
