"""Colours, RGB. They come from the set of Okabe and Ito (2008), which people with any kind of colour vision tell apart.

The person's left is sky blue, the right orange, the middle white; a person's own colour (label, floor mark) is never
one of those three.
"""

from typing import Any

from pose.skeletons import H36M17, Skeleton

RGB = tuple[int, int, int]

SIDE_COLOURS: dict[str, RGB] = {"left": (86, 180, 233), "right": (240, 144, 10), "centre": (245, 245, 245)}
PERSON_COLOURS: tuple[RGB, ...] = (
    (240, 228, 66),
    (0, 178, 130),
    (204, 121, 167),
    (50, 90, 210),
    (213, 70, 40),
    (160, 160, 160),
)
INK: RGB = (16, 18, 22)
PAPER: RGB = (250, 250, 250)


def person_colour(person: int) -> RGB:
    """The colour of a person's id; it repeats after six people."""
    return PERSON_COLOURS[person % len(PERSON_COLOURS)]


def ink_on(colour: RGB) -> RGB:
    """Black or white, whichever reads better on `colour` (its luma decides)."""
    red, green, blue = colour
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 130 else PAPER


def mix(colour: RGB, other: RGB, share: float) -> RGB:
    """`colour` with `share` (0 to 1) of `other` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def edge_side(skeleton: Skeleton, a: int, b: int) -> str:
    """The side of a limb: that of its ends, 'centre' where it joins left and right."""
    sides = {skeleton.side(a), skeleton.side(b)} - {"centre"}
    return sides.pop() if len(sides) == 1 else "centre"


def drawing_facts() -> dict[str, Any]:
    """What a page needs to draw bodies, of plain values: limbs of Human3.6M-17 with their sides, the head, colours."""
    return {
        "edges3d": [
            {"ends": [a, b], "side": edge_side(H36M17, a, b), "head": H36M17.names[b] == "head"}
            for a, b in H36M17.edges
        ],
        "head": H36M17.index("head"),
        "colours": {**SIDE_COLOURS, "people": PERSON_COLOURS},
    }
