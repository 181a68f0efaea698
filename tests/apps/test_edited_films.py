"""Edited films end in a result, whatever the lengths and the content of their scenes."""

import numpy as np
import pytest
from edited_films import edited, images_of, joined, write
from hypothesis import given, settings
from hypothesis import strategies as st
from pose_apps.run import main

from pose.results import load_poses

SCENES = ("dance", "squats", "walk", "black", "noise")
OPTIONS = ([], ["--camera", "fixed"], ["--camera", "free"], ["--camera", "rotating"], ["--hands"], ["--analyse"])


@pytest.fixture(scope="module")
def scenes(videos):
    noise = [np.random.default_rng(n).integers(0, 255, (240, 320, 3), dtype=np.uint8) for n in range(30)]
    clips = {name: images_of(videos / f"{name}.mp4", 40, 20) for name in ("dance", "squats")}
    return clips | {"walk": images_of(videos / "walk-by.mp4", 40), "black": [np.zeros_like(noise[0])], "noise": noise}


@pytest.mark.slow
def test_any_edit_ends_in_a_result(scenes, weights_setting, monkeypatch, tmp_path_factory):
    for name, value in weights_setting.items():
        monkeypatch.setenv(name, value)

    @settings(max_examples=40)
    @given(
        names=st.lists(st.sampled_from(SCENES), min_size=1, max_size=4),
        lengths=st.lists(st.integers(1, 30) | st.sampled_from([1, 2, 3]), min_size=1, max_size=8),
        options=st.sampled_from(OPTIONS),
    )
    def check(names, lengths, options):
        folder = tmp_path_factory.mktemp("film")
        film = write(folder / "film.mp4", edited([scenes[name] for name in names], lengths))
        assert main([str(film), "--out", str(folder / "out"), "--quiet", *options]) == 0, (names, lengths, options)
        assert len(load_poses(folder / "out" / "poses.npz").timestamps) == sum(lengths)

    check()


@pytest.mark.slow
def test_any_mixture_of_sizes_and_rates_ends_in_a_result(scenes, weights_setting, monkeypatch, tmp_path_factory):
    for name, value in weights_setting.items():
        monkeypatch.setenv(name, value)

    @settings(max_examples=25)
    @given(
        name=st.sampled_from(SCENES),
        counts=st.lists(st.integers(1, 20), min_size=1, max_size=3),
        sizes=st.lists(st.sampled_from([(320, 240), (176, 144), (240, 320), (64, 48)]), min_size=3, max_size=3),
        steps=st.none() | st.lists(st.sampled_from([5, 10, 20, 60, 240]), min_size=60, max_size=60),
        fps=st.sampled_from([5, 12, 25, 50]),
    )
    def check(name, counts, sizes, steps, fps):
        folder = tmp_path_factory.mktemp("film")
        parts = [[scenes[name][n % len(scenes[name])] for n in range(count)] for count in counts]
        if steps is None:
            film = joined(folder / "film.ts", parts, sizes[: len(parts)], fps)
        else:
            stamps = np.cumsum([0, *steps]).tolist()
            film = write(folder / "film.mkv", [image for part in parts for image in part], stamps, fps)
        assert main([str(film), "--out", str(folder / "out"), "--quiet"]) == 0, (name, counts, sizes, steps, fps)
        times = load_poses(folder / "out" / "poses.npz").timestamps
        assert (np.diff(times) > 0).all()
        assert len(times) == sum(counts) or steps is None

    check()
