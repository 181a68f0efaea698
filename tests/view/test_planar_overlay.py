"""The overlay on planes of video: the same drawing as on RGB, and everything else untouched."""

import numpy as np
import pytest
from pose_fakes import random_result, rgb_of, seen_result

from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.structures.types import U8
from pose.video.planes import BT470BG, BT709, SMPTE170M, Colours, Planes
from pose.view.overlay import Overlay
from pose.view.planar_overlay import PlanarOverlay

SIZES = [(640, 360), (360, 640), (641, 361), (361, 641), (360, 641), (33, 57), (200, 31), (16, 16), (1, 1)]


def smooth(size, rng) -> U8:
    """An image whose colours change slowly, which 4:2:0 keeps."""
    width, height = size
    columns, rows = np.meshgrid(np.linspace(0, 3, width), np.linspace(0, 3, height))
    waves = [np.sin(columns * a + rows * b + c) for a, b, c in rng.uniform(0.2, 1, (3, 3))]
    return (128 + 90 * np.stack(waves, axis=-1)).astype(np.uint8)


def source_planes(image: U8, colours: Colours) -> Planes:
    """Planes of exactly the image's size, as a decoder gives them."""
    height, width = image.shape[:2]
    even = Planes.of_rgb(image, colours)
    half = (slice((height + 1) // 2), slice((width + 1) // 2))
    return Planes(even.y[:height, :width], even.u[half], even.v[half], colours)


@pytest.mark.parametrize("colours", [Colours(BT709), Colours(SMPTE170M), Colours(BT470BG, full_range=True)], ids=str)
def test_planes_round_trip_rgb(rng, colours):
    flat = np.repeat(np.repeat(rng.integers(0, 256, (9, 11, 3), np.uint8), 2, axis=0), 2, axis=1)
    back = rgb_of(Planes.of_rgb(flat, colours))
    assert np.abs(back.astype(int) - flat).max() <= (3 if not colours.full_range else 2)


@pytest.mark.parametrize("matrix", [BT709, SMPTE170M])
@pytest.mark.parametrize("full", [False, True])
def test_colours_are_those_of_ffmpeg(rng, matrix, full):
    import av

    image = np.repeat(np.repeat(rng.integers(0, 256, (8, 8, 3), np.uint8), 8, axis=0), 8, axis=1)
    frame = av.VideoFrame.from_ndarray(image, format="rgb24")
    theirs = frame.reformat(format="yuv444p", dst_colorspace=matrix, dst_color_range=2 if full else 1).to_ndarray()
    ours = Planes.of_rgb(image, Colours(matrix, full))
    inside = (slice(2, None, 4), slice(2, None, 4))  # away from the edges, where filters differ
    assert np.abs(ours.y[inside].astype(int) - theirs[0][inside]).max() <= 1
    for mine, plane in ((ours.u, theirs[1]), (ours.v, theirs[2])):
        assert np.abs(mine[1::2, 1::2].astype(int) - plane[2::4, 2::4]).max() <= 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("people", [0, 4])
def test_planar_drawing_equals_rgb_drawing(rng, size, people):
    """Both overlays see the same frames; what differs is what 4:2:0 cannot hold, not where anything is.

    Light upon light (a halo over a trail) ends at 255 in RGB, and above white in Y: a few pixels are further apart.
    """
    image = smooth(size, rng)
    planes = source_planes(image, Colours())
    before = [plane.copy() for plane in (planes.y, planes.u, planes.v)]
    plain, planar = Overlay(size, BLAZEPOSE33), PlanarOverlay(size, BLAZEPOSE33, Colours())
    assert plain.output_size == planar.output_size
    for index in range(4):
        result = random_result(rng, index, people)
        drawn = planar.draw(planes, result)
        wanted = Planes.of_rgb(plain.draw(image, result))
        assert drawn.size == wanted.size
        for mine, true in ((drawn.y, wanted.y), (drawn.u, wanted.u), (drawn.v, wanted.v)):
            apart = np.abs(mine.astype(int) - true)
            assert (apart > 4).mean() < 0.02
            assert apart.max() < 60
    for plane, then in zip((planes.y, planes.u, planes.v), before, strict=True):
        assert np.array_equal(plane, then)


def test_undrawn_plane_samples_are_unchanged(rng):
    size = (640, 480)
    noise = Planes(
        rng.integers(0, 256, (480, 640), np.uint8), *rng.integers(0, 256, (2, 240, 320), np.uint8), Colours(SMPTE170M)
    )
    result = seen_result([(0.5, 0, 6.0)])
    overlay = PlanarOverlay(size, H36M17, noise.colours)
    drawn = overlay.draw(noise, result)
    assert drawn.colours == Colours(SMPTE170M)
    changed = drawn.y != noise.y
    assert changed.any()
    x0, y0 = result.people.keypoints[0].min(axis=0) - 50  # the badge is above the head
    x1, y1 = result.people.keypoints[0].max(axis=0) + 10
    rows, columns = np.nonzero(changed[:440, :])  # above the legend
    outside = (columns < x0) | (columns > x1) | (rows < y0) | (rows > y1)
    inset = overlay._overlay._corner
    assert inset is not None
    corner = inset.next_area(result, overlay._overlay._heads(result))
    in_corner = (columns >= corner.x0) & (columns < corner.x1) & (rows >= corner.y0) & (rows < corner.y1)
    assert not (outside & ~in_corner).any()


def test_planes_of_other_colours_are_refused(rng):
    with pytest.raises(ValueError, match="expected an image of"):
        PlanarOverlay((320, 240), H36M17, Colours()).draw(
            Planes.empty((320, 240), Colours(SMPTE170M)), random_result(rng, 0, 0)
        )
