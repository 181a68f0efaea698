"""The kinds of edits. docs/reference/edits.md describes their files."""

from dataclasses import dataclass
from typing import Literal

LIMB_NAMES = ("left_arm", "right_arm", "left_leg", "right_leg")
Feet = Literal["left", "right"]
Point = tuple[float, float]  # x and y in px of the image


@dataclass(frozen=True, slots=True)
class Place:
    """A person at a time: the one whose trunk is nearest to a point of the image."""

    time: float  # s
    x: float  # px
    y: float  # px
    camera: int = 1  # number of the camera, from 1 on; time and point are those of its video


@dataclass(frozen=True, slots=True)
class Rename:
    """Name of a person."""

    person: Place
    name: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Tracks of one person: `person` becomes `into`."""

    person: Place
    into: Place


@dataclass(frozen=True, slots=True)
class Split:
    """A track that shows two people: it is a new person from the time of the place on."""

    person: Place


@dataclass(frozen=True, slots=True)
class Swap:
    """Two people whose ids are swapped from the time of `person` on."""

    person: Place
    other: Place


@dataclass(frozen=True, slots=True)
class Delete:
    """A track that is not wanted, from the time of the place until `until` s; without `until` the whole track."""

    person: Place
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """A track that shows a person, although it is short or rarely visible."""

    person: Place


@dataclass(frozen=True, slots=True)
class Joint:
    """Position of a 2D joint in the frame of the place; detections of the joint close to this time are ignored."""

    person: Place
    joint: str
    x: float  # px
    y: float  # px


@dataclass(frozen=True, slots=True)
class Hidden:
    """A limb, or a joint, that is not visible from the time of the place until `until` s."""

    person: Place
    limb: str
    until: float


@dataclass(frozen=True, slots=True)
class Sides:
    """Left and right of limbs from the place until `until` s; repair decides about changes in between."""

    person: Place
    limbs: Literal["legs", "arms", "body"]
    until: float
    left: Point  # place of the left knee at the start; of the left elbow for the arms
    right: Point  # place of the right knee or elbow at the start


@dataclass(frozen=True, slots=True)
class Height:
    """Body height of a person."""

    person: Place
    metres: float


@dataclass(frozen=True, slots=True)
class Floor:
    """Ground under the lower foot of a person at the time of the place, `height` m above the floor of the room."""

    person: Place
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Gravity:
    """A line of the image that is vertical in the room."""

    time: float  # s
    start: Point
    end: Point
    camera: int = 1  # number of the camera, from 1 on


@dataclass(frozen=True, slots=True)
class Contact:
    """Whether a foot touches the ground, from the time of the place until `until` s."""

    person: Place
    foot: Feet
    on: bool
    until: float


Edit = (
    Rename | Merge | Split | Swap | Delete | Keep | Joint | Hidden | Sides | Height | Floor | Gravity | Contact
)  # fmt: skip
KINDS: dict[str, type[Edit]] = {
    "rename": Rename, "merge": Merge, "split": Split, "swap": Swap, "delete": Delete, "keep": Keep, "joint": Joint,
    "hidden": Hidden, "sides": Sides, "height": Height, "floor": Floor, "gravity": Gravity, "contact": Contact,
}  # fmt: skip


def camera_of(edit: Edit) -> int:
    """Return the number of the camera in which an edit is given."""
    return edit.camera if isinstance(edit, Gravity) else edit.person.camera


NAMES = {kind: name for name, kind in KINDS.items()}
