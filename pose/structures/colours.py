"""Colours of drawings, as RGB.

Left is sky blue and right orange, from the palette of Okabe and Ito (2008), whose colours people with any kind of
colour vision can distinguish. Joints in the middle of the body are white. The colours of people (badge, outline, floor
mark) differ from these three. All pairs of colours are at least 30 apart in CIELAB.
"""

import functools

from pose.structures.skeletons import H36M17, Skeleton
from pose.utils.json_values import Json

RGB = tuple[int, int, int]

SIDE_COLOURS: dict[str, RGB] = {"left": (86, 180, 233), "right": (240, 144, 10), "centre": (245, 245, 245)}
PERSON_COLOURS: tuple[RGB, ...] = (
    (250, 235, 60),
    (0, 165, 120),
    (240, 130, 200),
    (35, 75, 225),
    (205, 40, 50),
    (150, 150, 150),
    (150, 50, 165),
    (150, 225, 60),
    (125, 80, 40),
    (0, 110, 120),
)
INK: RGB = (16, 18, 22)
PAPER: RGB = (250, 250, 250)


def person_colour(person: int) -> RGB:
    """Return the colour of a track id. Colours repeat after ten people."""
    return PERSON_COLOURS[person % len(PERSON_COLOURS)]


def rim_colour(person: int) -> RGB:
    """Return the colour of the outline of a person's limbs, a darker shade of the person's colour."""
    return mix(person_colour(person), INK, 0.25)


def ink_on(colour: RGB) -> RGB:
    """Return black or white, whichever has the better contrast with `colour` by luma."""
    red, green, blue = colour
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 130 else PAPER


@functools.lru_cache(maxsize=4096)  # each frame uses the same few hundred colours
def mix(colour: RGB, other: RGB, share: float) -> RGB:
    """Mix two RGB colours: `share` is the fraction of `other` in the result, 0 to 1."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def edge_side(skeleton: Skeleton, a: int, b: int) -> str:
    """Return the side of the limb between two joints, 'left' or 'right'; 'centre' in the middle or across it."""
    sides = {skeleton.side(a), skeleton.side(b)} - {"centre"}
    return sides.pop() if len(sides) == 1 else "centre"


def drawing_settings() -> dict[str, Json]:
    """Return the values that a web page needs for drawing.

    Returns:
        `edges3d`: Limbs of Human3.6M-17, with the indices `ends` of both joints, the `side`, and whether the limb ends
        at the `head`. `head`: Index of the joint head. `colours`: RGB colours by side, and a list for `people`.
    """
    return {
        "edges3d": [
            {"ends": [a, b], "side": edge_side(H36M17, a, b), "head": H36M17.names[b] == "head"}
            for a, b in H36M17.edges
        ],
        "head": H36M17.index("head"),
        "colours": {**SIDE_COLOURS, "people": PERSON_COLOURS},
    }
