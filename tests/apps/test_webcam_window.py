"""The window of `pose-webcam`, drawn by SDL without a screen: what it shows and what its keys do."""

import os
import sys
import time

import cv2
import numpy as np
import pygame
import pytest
from pose_apps.webcam.live_outputs import LiveOutputs
from pose_apps.webcam.options import WebcamConfig, check_several
from pose_apps.webcam.window import VIEWS, Display, FrameRenderer, LiveBodies, LiveWindow
from pose_fakes import SIZE, STANDING, run_info, seen_result

from pose.body.fitted_bodies import LIVE_PEOPLE
from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.live import LiveLoop, LiveResult, PushedFrames
from pose.live.result import Stream
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.utils.presets import preset_names
from pose.view.mesh_overlay import BodyMeshes

ROOT = np.array([[0, 0, 4.0]], np.float32)


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


class Session:
    """Sees the same person in every frame."""

    camera, refines = Camera.of(SIZE), False

    def track(self, frame):
        return frame

    def lift(self, frame):
        return [seen_result(ROOT, STANDING, frame.index, frame.time)]

    def flush(self):
        return []


class Pipeline:
    config, device, skeleton, intrinsics = PipelineConfig(lifter="stream"), "cpu", H36M17, None

    def session(self, size):
        return Session()


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """A running loop in a window: `step(*keys)` presses keys, shows one more frame, and gives the window's pixels."""
    monkeypatch.setattr("pose.live.recorder._run_info", lambda loop, pipeline, size: run_info(H36M17, size))
    source = PushedFrames("test")
    with Display("test") as display, LiveLoop(Pipeline(), source) as loop:
        config = WebcamConfig(out=str(tmp_path))
        window = LiveWindow(loop, display, config, LiveOutputs(loop, config))
        grey = np.linspace(40, 90, SIZE[0], dtype=np.uint8)
        image = np.broadcast_to(grey[None, :, None], (SIZE[1], SIZE[0], 3)).copy()

        def step(*keys: int, frame: bool = True) -> np.ndarray:
            for key in keys:
                pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))
            before = loop.status().processed
            if frame:
                source.push(image)
            while frame and not loop.paused and loop.status().processed == before:
                time.sleep(0.002)
            window.step()
            return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)

        step.window, step.loop, step.source = window, loop, source
        yield step


def coloured(pixels: np.ndarray) -> int:
    """How many pixels are no grey of the image, the text or the window."""
    spread = pixels.max(axis=2).astype(int) - pixels.min(axis=2)
    return int((spread > 60).sum())


def test_window_shows_the_person_and_the_status(demo):
    pixels = demo()
    width = pixels.shape[1]
    assert coloured(pixels[:, : width // 2]) > 300  # the skeleton on the image
    assert coloured(pixels[:, width // 2 :]) > 300  # and in 3D
    assert (pixels[-90:] > 200).sum() > 500  # letters below
    demo()
    assert "1 person" in demo.loop.status().line()


def test_view_key_cycles_the_views(demo):
    both = demo()
    picture_only = demo(pygame.K_v)
    space_only = demo(pygame.K_v)
    again = demo(pygame.K_v)
    assert [len({frame.shape for frame in (both, again)}), demo.window._view] == [1, "both"]
    grey = [int((np.abs(frame.astype(int) - 65).max(axis=2) < 26).sum()) for frame in (both, picture_only, space_only)]
    assert grey[0] > 100_000
    assert grey[1] > 100_000
    assert coloured(space_only) > 300


def test_mirror_key_flips_the_image(demo):
    straight = demo()
    mirrored = demo(pygame.K_m)
    again = demo(pygame.K_m)
    corner = slice(5, 50), slice(5, 50)
    assert straight[corner].mean() < 50 < 80 < mirrored[corner].mean()  # the image is darker on its left
    np.testing.assert_allclose(again[corner], straight[corner], atol=1)


def test_pause_key_freezes_the_image(demo):
    demo()
    demo(pygame.K_SPACE, frame=False)
    assert demo.loop.paused
    demo()
    assert demo.loop.status().processed == 1
    demo(pygame.K_SPACE, frame=False)
    assert not demo.loop.paused
    demo()
    assert demo.loop.status().processed == 2


def test_record_writes_files_and_shows_a_red_dot(demo, tmp_path):
    plain = demo()
    demo(pygame.K_r)
    demo()
    recording = demo()
    dot = np.s_[8:26, 8:26]
    assert (recording[dot][..., 0].astype(int) - recording[dot][..., 1] > 100).sum() > 50
    assert (plain[dot][..., 0].astype(int) - plain[dot][..., 1] > 100).sum() == 0
    demo(pygame.K_r)
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"]


def test_failed_recording_start_is_shown_and_the_window_continues(demo, tmp_path):
    os.rmdir(tmp_path)
    tmp_path.write_text("a file where the folder should be")
    demo(pygame.K_r)
    assert demo.window._notice.startswith("cannot record into")
    demo(pygame.K_s)
    assert str(tmp_path) in demo.window._notice
    assert demo.loop.status().processed == 2


def test_snapshot_saves_the_shown_image(demo, tmp_path):
    demo()
    demo(pygame.K_s)
    (path,) = tmp_path.iterdir()
    saved = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    assert saved.shape[0] == SIZE[1]
    assert saved.shape[1] > 1.5 * SIZE[0]
    assert coloured(saved) > 600


def test_quit_by_key_and_by_closing_the_window(demo):
    demo()
    assert demo.window.is_open
    demo(pygame.K_ESCAPE)
    assert not demo.window.is_open


def test_closing_the_window_quits(demo):
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    demo()
    assert not demo.window.is_open


def wait_for_preset(demo) -> None:
    end = time.monotonic() + 100
    while demo.window._loading is None or demo.window._loading.is_alive():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_next_preset_loads_while_the_loop_runs(demo, monkeypatch):
    loaded = []

    def load(config, intrinsics):
        loaded.append(config)
        return Pipeline()

    monkeypatch.setattr("pose_apps.webcam.window.load_pipeline", load)
    monkeypatch.setattr(Pipeline, "config", PipelineConfig(lifter="stream", repair=False, tracker="botsort"))
    before = demo.loop.pipeline
    for _ in range(2):
        demo(pygame.K_p)
        wait_for_preset(demo)
    assert demo.loop.pipeline is not before
    assert not any(config.repair for config in loaded)
    assert {config.tracker for config in loaded} == {"botsort"}
    assert [config.lifter for config in loaded] == ["stream", "stream"]
    assert f"preset {preset_names()[1]}: {loaded[1].detector}" in demo.window._notice
    demo()


def test_failed_preset_load_keeps_the_old_pipeline(demo, monkeypatch):
    def load(config, intrinsics):
        raise PoseError("its weights are not here")

    monkeypatch.setattr("pose_apps.webcam.window.load_pipeline", load)
    before = demo.loop.pipeline
    demo(pygame.K_p)
    wait_for_preset(demo)
    assert demo.window._notice == f"preset {preset_names()[0]}: its weights are not here"
    assert demo.loop.pipeline is before


def test_message_of_the_source_is_shown(demo):
    calm = demo()
    demo.source.message = "camera 7 is gone (unplugged), reconnecting in 2 s"
    alarmed = demo()
    amber = [int((frame[..., 0].astype(int) - frame[..., 2] > 120).sum()) for frame in (calm[-90:], alarmed[-90:])]
    assert amber[1] > amber[0] + 100


@pytest.mark.parametrize("view", VIEWS)
def test_canvas_size_equals_the_drawn_image(view):
    canvas = FrameRenderer(SIZE, H36M17, view)
    image = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    live = LiveResult(image, seen_result(ROOT), H36M17, 0.0, 0.1)
    drawn = canvas.draw(live)
    assert drawn.shape == (canvas.size[1], canvas.size[0], 3)
    assert canvas.fits(live, view)
    assert not canvas.fits(LiveResult(image[:100], live.result, H36M17, 0.0, 0.1), view)


def test_missing_display_names_the_alternatives(monkeypatch):
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(PoseError, match=r"cannot open a window .*--web .*--headless"):
        Display("test")


def test_missing_pygame_names_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(PoseError, match=r"pip install 'pose-run\[webcam\]'.*--web .*--headless"):
        Display("test")


def test_mirrored_window_mirrors_the_drawn_bodies():
    """The mirrored window shows the mirrored body, not the body of a mirrored pose."""
    image = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    turned = STANDING @ np.array([[0.8, 0, 0.6], [0, 1, 0], [-0.6, 0, 0.8]], np.float32)
    stream = Stream(Pipeline(), Session(), SIZE)
    live = LiveResult(image, seen_result(np.array([[0.5, 0, 4.0]], np.float32), turned), H36M17, 0.0, 0.1, stream)
    corners = []
    for mirror in (False, True):
        bodies = LiveBodies()
        bodies.take(live, mirror=mirror)
        (mesh,) = bodies.of(live.result)
        corners.append(mesh.corners)
    np.testing.assert_allclose(corners[1][..., 0], SIZE[0] - 1 - corners[0][..., 0], atol=1e-3)
    np.testing.assert_array_equal(corners[1][..., 1], corners[0][..., 1])
    plain, with_body = (
        FrameRenderer(SIZE, H36M17, "2D", bodies).draw(live, mirror=True) for bodies in (None, LiveBodies())
    )
    thorax = np.rint(live.mirrored().result.people.keypoints[0, H36M17.index("thorax")]).astype(int)
    beside = (slice(thorax[1] + 20, thorax[1] + 24), slice(thorax[0] - 6, thorax[0] + 6))
    assert (with_body[beside] != plain[beside]).any()


def test_only_the_nearest_people_get_a_live_body():
    places = [(0.3 * at, 0, 3.0 + 0.2 * at) for at in range(LIVE_PEOPLE + 2)]
    bodies = BodyMeshes(Camera.of(SIZE), H36M17, live=True)
    result = seen_result(np.array(places[::-1], np.float32))
    assert [mesh.person for mesh in bodies.of(result)] == result.people.ids[2:].tolist()


def test_body_option_is_rejected_headless_and_with_several_cameras():
    with pytest.raises(UsageError, match="--body"):
        check_several(WebcamConfig(body=True, source=["0", "1"]), PipelineConfig())
    with pytest.raises(UsageError, match="--body"):
        WebcamConfig(body=True, headless=True)
