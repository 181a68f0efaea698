"""Left and right sides that a user gives, which take precedence over repair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from pose.errors import UsageError
from pose.lifting.repair.person import mirrored_orders
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import get_skeleton
from pose.structures.stages import LifterStage
from pose.structures.types import Flags


@dataclass(frozen=True, slots=True)
class GivenSides:
    """Sides of a person's limbs from `begin` to `end`, given at the start; repair decides about changes in between."""

    person: int  # track id
    begin: float  # s, inclusive
    end: float  # s, inclusive
    limbs: tuple[int, ...]  # 0 for the legs, 1 for the arms
    swapped: bool  # whether left and right of the detected keypoints are swapped at the start


@runtime_checkable
class TakesSides(Protocol):
    """Additional method of a `LifterStage` that can follow given sides."""

    def take_sides(self, sides: Sequence[GivenSides]) -> None:
        """Set the sides that a user gives, before the first frame."""
        ...


def give_sides(stage: LifterStage, sides: Sequence[GivenSides]) -> None:
    """Make a stage follow given sides; UsageError if the stage cannot, because it streams."""
    if not isinstance(stage, TakesSides):
        raise UsageError("edits: sides need an offline lifter; leave out --lifter and --lookahead")
    stage.take_sides(sides)


class SideChanges:
    """Frame-by-frame changes of repaired sides of one person."""

    def __init__(self, given: Sequence[GivenSides], person: int) -> None:
        self._given = [one for one in given if one.person == person]
        self._wrong: dict[tuple[int, int], bool] = {}  # by index of the entry, and limb

    def limbs(self, time: float, repaired: Flags) -> Flags:
        """Return the limbs (2,) to swap at `time` s, after repair swapped those in `repaired` (2,)."""
        swap = np.zeros(2, bool)
        for place, one in enumerate(self._given):
            if one.begin - 1e-6 <= time <= one.end + 1e-6:
                for limb in one.limbs:
                    swap[limb] = self._wrong.setdefault((place, limb), bool(repaired[limb]) != one.swapped)
        return swap


def with_sides(raw: Sequence2D, repaired: Sequence2D, changes: SideChanges) -> Sequence2D:
    """Return the repaired keypoints of a person with the sides that a user gives; `raw` are those before repair."""
    skeleton = get_skeleton(raw.skeleton)
    keypoints, scores, mirrors = repaired.keypoints.copy(), repaired.scores.copy(), mirrored_orders(skeleton)
    moved = (raw.keypoints != keypoints).any(axis=-1)  # repair changes coordinates only by swaps
    swapped = np.stack([moved[:, order != np.arange(len(order))].any(axis=1) for order in mirrors], axis=1)
    for row, time in enumerate(raw.times.tolist()):
        for order in mirrors[changes.limbs(time, swapped[row])]:
            keypoints[row], scores[row] = keypoints[row, order], scores[row, order]
    return replace(repaired, keypoints=keypoints, scores=scores)
