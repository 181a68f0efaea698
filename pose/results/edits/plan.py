"""Edits applied to a run: which tracks they mean, and what changes in the 2D, the sides and the world."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pose.lifting.repair.person import LIMB_NAMES as SIDE_NAMES
from pose.lifting.repair.swaps import LIMBS
from pose.lifting.sides import GivenSides
from pose.results.edits.files import to_json
from pose.results.edits.types import (
    LIMB_NAMES,
    NAMES,
    Contact,
    Delete,
    Edit,
    Floor,
    Gravity,
    Height,
    Hidden,
    Joint,
    Keep,
    Merge,
    Place,
    Rename,
    Sides,
    Split,
    Swap,
    camera_of,
)  # fmt: skip
from pose.structures.camera import Camera
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import F64, People
from pose.utils.json_values import Json
from pose.world.clean import Steps
from pose.world.corrections import Corrections, GivenContact

SEARCH_S = 0.25  # maximum time between a place and the frame in which its person is found
MAX_DISTANCE = 0.5  # maximum distance of a place from the trunk of its person, in diagonals of the person's box
KEY_S = 0.1  # s around a joint that a user placed in which detections of this joint are ignored
_TRUNK = (1, 4, 11, 14)  # hips and shoulders of Human3.6M-17

Change = Callable[[People], People]


class StoredFrames:
    """All frames of a run in 2D, by time."""

    def __init__(self, stored: ResultStore) -> None:
        times, self.last_id = [], 0
        for people in stored.people():
            times.append(people.time)
            self.last_id = max(self.last_id, *people.ids.tolist(), 0)
        self._stored, self._times = stored, np.array(times)

    def near(self, time: float, within: float) -> Iterator[People]:
        """Yield the frames at most `within` s from a time, nearest first."""
        away = np.abs(self._times - time)
        for position in np.argsort(away, kind="stable")[: int((away <= within).sum())].tolist():
            yield self._stored.people_at(position)


class EditPlan:
    """Edits of a run, with track ids instead of places.

    Attributes:
        sides: Sides that the user gives.
        corrections: What the user says about the world, by track id.
        names: Names of people by track id.
        deleted: Tracks that are not wanted, in a run of several cameras; otherwise frames are without them.
        drawn: (2, 2) px, ends of lines that are vertical in the room.
        problems: A message for each edit that does not apply to this run.
    """

    def __init__(
        self,
        edits: Sequence[Edit],
        observed: StoredFrames,
        skeleton: Skeleton,
        camera: Camera,
        number: int = 1,
        cameras: int = 1,
    ) -> None:
        """Find the tracks that the edits mean; each edit refers to the people as the earlier edits leave them.

        Of several cameras, the plan has the edits of one with a `number`, from 1 on.
        """
        self._observed, self._skeleton, self._camera = observed, skeleton, camera
        self._changes: list[Change] = []
        self.corrections = Corrections()
        self._edits, self._several = edits, cameras > 1
        self.names, self.deleted, self.drawn = dict[int, str](), set[int](), list[F64]()
        self.sides: list[GivenSides] = []
        self.problems: list[str] = []
        self._new_id = 1 + observed.last_id
        for place, edit in enumerate(edits, 1):
            problem = self._add(edit) if camera_of(edit) == number else ""
            if camera_of(edit) > cameras and number == 1:
                problem = f"there is no camera {camera_of(edit)}"
            if problem:
                self.problems.append(f"edit {place} ({NAMES[type(edit)]}) is not applied: {problem}")

    @property
    def changes_frames(self) -> bool:
        """Whether the 2D of any frame, or sides, differ from those observed."""
        return bool(self._changes or self.sides)

    def apply(self, people: People) -> People:
        """Return the people of a frame after the edits, without those that were interpolated between samples."""
        people = self._edited(people)
        return people[~people.interpolated] if people.interpolated.any() else people

    def settings(self, joined: Mapping[int, int]) -> dict[str, Json]:
        """Return the edits and the names of people by final id, for the metadata of a result."""
        names = {str(joined.get(person, person)): name for person, name in sorted(self.names.items())}
        return {"edits": to_json(self._edits)["edits"], "names": names}

    def steps(self, steps: Steps) -> Steps:
        """Return the settings of the transformation to the world with what the user says about it."""
        return replace(steps, corrections=self.corrections)

    def _edited(self, people: People) -> People:
        for change in self._changes:
            people = change(people)
        return people

    def _find(self, place: Place) -> tuple[int, People] | None:
        """Return the track at a place and its frame; None if there is no person."""
        for people in self._observed.near(place.time, SEARCH_S):
            edited = self._edited(people)
            if len(edited) == 0:
                continue
            points, scores = to_h36m17(edited.keypoints, edited.scores, self._skeleton)
            far = np.array([_distance(*row, place) for row in zip(points, scores, edited.boxes, strict=True)])
            if far.min() <= MAX_DISTANCE:
                return int(edited.ids[far.argmin()]), edited
        return None

    def _add(self, edit: Edit) -> str:
        """Add an edit; return why it does not apply, or an empty text."""
        if isinstance(edit, Gravity):
            ends = np.array([edit.start, edit.end], np.float32)
            if np.linalg.norm(ends[1] - ends[0]) < 2:
                return "the line is shorter than 2 px"
            self.drawn.append(ends.astype(np.float64))
            lines = (*self.corrections.lines, (edit.time, np.asarray(self._camera.unproject(ends), np.float64)))
            self.corrections = replace(self.corrections, lines=lines)
            return ""
        found = self._find(edit.person)
        if found is None:
            return _no_person(edit.person)
        if isinstance(edit, Merge | Swap):
            other = self._find(edit.into if isinstance(edit, Merge) else edit.other)
            if other is None:
                return _no_person(edit.into if isinstance(edit, Merge) else edit.other)
            if other[0] == found[0]:
                return "both places show the same person"
            self._relate(edit, found[0], other[0])
            return ""
        if isinstance(edit, Joint | Hidden | Sides):
            return self._add_limb(edit, *found)
        self._add_person(edit, found[0])
        return ""

    def _relate(self, edit: Merge | Swap, person: int, other: int) -> None:
        if isinstance(edit, Merge):
            self._changes.append(lambda people: _merged(people, person, other))
            return
        begin = edit.person.time

        def swap(people: People) -> People:
            ids = people.ids
            if people.time < begin - 1e-6 or not np.isin(ids, (person, other)).any():
                return people
            return replace(people, ids=np.where(ids == person, other, np.where(ids == other, person, ids)))

        self._changes.append(swap)

    def _add_person(self, edit: Edit, person: int) -> None:
        known = self.corrections
        match edit:
            case Rename():
                self.names[person] = edit.name
            case Split():
                new, begin, self._new_id = self._new_id, edit.person.time, self._new_id + 1
                self.corrections = replace(known, apart=known.apart | {(person, new)})
                self._changes.append(
                    lambda people: (
                        people
                        if people.time < begin - 1e-6 or person not in people.ids
                        else replace(people, ids=np.where(people.ids == person, new, people.ids))
                    )
                )
            case Delete(until=None) if self._several:
                self.deleted.add(person)
            case Delete():
                begin, end = (-np.inf, np.inf) if edit.until is None else (edit.person.time, edit.until)
                self._changes.append(
                    lambda people: people[people.ids != person] if _within(people.time, begin, end) else people
                )
            case Keep():
                self.corrections = replace(known, kept=known.kept | {person})
            case Height():
                self.corrections = replace(known, heights={**known.heights, person: edit.metres})
            case Floor():
                floors = {**known.floors, person: (edit.person.time, edit.height)}
                self.corrections = replace(known, floors=floors)
            case Contact():
                side = ("left", "right").index(edit.foot)
                contact = GivenContact(person, side, edit.person.time, edit.until, edit.on)
                self.corrections = replace(known, contacts=(*known.contacts, contact))

    def _add_limb(self, edit: Joint | Hidden | Sides, person: int, people: People) -> str:
        names = self._skeleton.names
        if isinstance(edit, Sides):
            return self._add_sides(edit, person, people)
        if isinstance(edit, Joint):
            if edit.joint not in names:
                return f"{self._skeleton.name} has no joint {edit.joint}"
            self._changes.append(_placed_joint(person, names.index(edit.joint), people.time, (edit.x, edit.y)))
            return ""
        joints = _joints_of(edit.limb, self._skeleton)
        if not joints:
            return f"{self._skeleton.name} has no joint {edit.limb}"
        begin, end = edit.person.time, edit.until

        def hide(people: People) -> People:
            if not _within(people.time, begin, end):
                return people
            scores = people.scores.copy()
            scores[np.flatnonzero(people.ids == person)[:, None], joints] = 0
            return replace(people, scores=scores)

        self._changes.append(hide)
        return ""

    def _add_sides(self, edit: Sides, person: int, people: People) -> str:
        joint = "elbow" if edit.limbs == "arms" else "knee"
        row = int(np.flatnonzero(people.ids == person)[0])
        left, right = (
            people.keypoints[row, self._skeleton.index(f"{side}_{joint}")].astype(np.float64)
            for side in ("left", "right")
        )
        ends = np.array([edit.left, edit.right])
        straight = np.linalg.norm(ends - [left, right])
        crossed = np.linalg.norm(ends - [right, left])
        limbs = tuple(range(len(SIDE_NAMES))) if edit.limbs == "body" else (SIDE_NAMES.index(edit.limbs),)
        self.sides.append(GivenSides(person, edit.person.time, edit.until, limbs, bool(crossed < straight)))
        return ""


def _no_person(place: Place) -> str:
    return f"no person is near ({place.x:.0f}, {place.y:.0f}) at {place.time:.2f} s"


def _within(time: float, begin: float, end: float) -> bool:
    return begin - 1e-6 <= time <= end + 1e-6


def _distance(points: F64, scores: F64, box: F64, place: Place) -> float:
    """Return the distance of a place from the trunk of a person, in diagonals of the person's box."""
    seen = scores[list(_TRUNK)] > 0
    trunk = points[list(_TRUNK)][seen].mean(axis=0) if seen.any() else (box[:2] + box[2:]) / 2
    return float(np.hypot(*(trunk - (place.x, place.y))) / max(float(np.hypot(*(box[2:] - box[:2]))), 1.0))


def _merged(people: People, person: int, into: int) -> People:
    """Return the people with one id; of two rows in one frame, the one with the higher scores remains."""
    ids = np.where(people.ids == person, into, people.ids)
    rows = np.flatnonzero(ids == into)
    if len(rows) > 1:
        worse = rows[np.argsort(-people.scores[rows].mean(axis=1), kind="stable")[1:]]
        kept = np.setdiff1d(np.arange(len(people)), worse)
        people, ids = people[kept], ids[kept]
    return replace(people, ids=ids)


def _placed_joint(person: int, joint: int, time: float, point: tuple[float, float]) -> Change:
    def place(people: People) -> People:
        away = abs(people.time - time)
        row = np.flatnonzero(people.ids == person)
        if away > KEY_S or not len(row):
            return people
        keypoints, scores, interpolated = people.keypoints.copy(), people.scores.copy(), people.interpolated.copy()
        sigma = people.keypoint_sigma.copy()
        scores[row, joint] = sigma[row, joint] = 0
        if away < 1e-6:
            keypoints[row, joint], scores[row, joint], interpolated[row] = point, 1, False
        return replace(people, keypoints=keypoints, scores=scores, keypoint_sigma=sigma, interpolated=interpolated)

    return place


def _joints_of(limb: str, skeleton: Skeleton) -> list[int]:
    """Return the joints of a limb that follow its first one, such as those after the hip, or the one joint."""
    if limb not in LIMB_NAMES:
        return [skeleton.index(limb)] if limb in skeleton.names else []
    side, _, kind = limb.partition("_")
    parts = (*LIMBS[f"{kind}s"][1:], *(("finger", "hand") if kind == "arm" else ()))
    return [
        joint for joint, name in enumerate(skeleton.names)
        if skeleton.side(joint) == side and any(part in name for part in parts)
    ]  # fmt: skip
