"""Files of edits: `edits.json`. docs/reference/edits.md documents the format."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from pose.errors import UsageError
from pose.results.edits.types import KINDS, LIMB_NAMES, NAMES, Edit, Place
from pose.structures.skeletons import SKELETONS
from pose.utils.json_values import Json, items, member, number, read_text_file, strict_json, text
from pose.utils.shown import in_brief, shown
from pose.utils.whole_file import whole_file
from pose.world.given import MAX_HEIGHT_M, MIN_HEIGHT_M

FORMAT, VERSION = "pose-edits", 1
MAX_EDITS = 10_000  # maximum number in a file
MAX_BYTES = 8 << 20
MAX_SECONDS, MAX_PIXELS = 1e6, 1e6
MAX_NAME_CHARS = 60
MAX_CAMERAS = 64  # of a place
MAX_SUPPORT_M = 5.0  # maximum height of what a person stands on, m
JOINTS = frozenset(name for skeleton in SKELETONS.values() for name in skeleton.names)


def read_edits(path: Path | str) -> list[Edit]:
    """Read a file of edits: PoseError if it cannot be read, UsageError if its edits are invalid."""
    try:
        return parse_edits(strict_json(read_text_file(Path(path), MAX_BYTES)))
    except (ValueError, UsageError) as error:
        raise UsageError(f"{path}: {in_brief(error)}") from error


def given_edits(edits: Path | str | Sequence[Edit] | None) -> Sequence[Edit]:
    """Return edits, or those of a file, checked like those of `read_edits`; None gives none."""
    if edits is None:
        return ()
    if isinstance(edits, Path | str):
        return read_edits(edits)
    if isinstance(edits, Sequence) and not isinstance(edits, str) and all(type(edit) in NAMES for edit in edits):
        return edits
    raise UsageError(f"edits: expected a path or a list of edits, got {shown(repr(edits), 60)}")


def parse_edits(value: Json) -> list[Edit]:
    """Return the edits of parsed content; UsageError names the one that is invalid."""
    try:
        if not isinstance(value, Mapping) or member(value, "format") != FORMAT:
            raise ValueError(f'expected an object with "format": "{FORMAT}"')
        if member(value, "version") != VERSION:
            raise ValueError(f"version {shown(value['version'], 20)} is not known; this program reads {VERSION}")
        if extra := set(value) - {"format", "version", "edits"}:
            raise ValueError(f"unknown key {shown(min(extra), 40)!r}")
        entries = items(member(value, "edits"))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"edits: {in_brief(error)}") from error
    if len(entries) > MAX_EDITS:
        raise UsageError(f"edits: {len(entries)} edits; maximum: {MAX_EDITS}")
    return [_edit(entry, place) for place, entry in enumerate(entries, 1)]


def to_json(edits: Sequence[Edit]) -> dict[str, Any]:
    """Return the content of a file of edits."""
    return {"format": FORMAT, "version": VERSION, "edits": [_entry(edit) for edit in edits]}


def write_edits(path: Path, edits: Sequence[Edit]) -> None:
    """Write a file of edits; an existing file is replaced at once."""
    with whole_file(path) as hidden:
        hidden.write_text(json.dumps(to_json(edits), indent=1) + "\n", encoding="utf-8")


def _entry(edit: Edit) -> dict[str, Any]:
    return {"edit": NAMES[type(edit)]} | _without_defaults(asdict(edit))


def _without_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_defaults(value) if isinstance(value, dict) else value
        for key, value in values.items()
        if value is not None and (key, value) != ("camera", 1)
    }


def _edit(entry: Json, place: int) -> Edit:
    where = f"edit {place}"
    try:
        if not isinstance(entry, Mapping):
            raise TypeError(f"expected an object, got {type(entry).__name__}")
        name = text(member(entry, "edit"))
        if name not in KINDS:
            raise ValueError(f"unknown kind {shown(name, 40)!r}; known: {', '.join(KINDS)}")
        where = f"edit {place} ({name})"
        kind: Any = KINDS[name]
        known = {one.name: one for one in fields(kind)}
        if extra := set(entry) - {"edit", *known}:
            raise ValueError(f"unknown key {shown(min(extra), 40)!r}")
        missing = [key for key, one in known.items() if key not in entry and one.default is MISSING]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        values = {key: _CHECKS[key](key, entry[key]) for key in known if key in entry}
        edit: Edit = kind(**values)
    except (KeyError, TypeError, ValueError) as error:
        said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else in_brief(error)
        raise UsageError(f"{where}: {said}") from error
    until, person = values.get("until"), values.get("person")
    if until is not None and person is not None and until < person.time:
        raise UsageError(f"{where}: until {until:g} s is before the time of the person, {person.time:g} s")
    other = values.get("into") or values.get("other")
    if other is not None and person is not None and other.camera != person.camera:
        raise UsageError(f"{where}: both places must be of one camera")
    return edit


def _ranged(least: float, most: float) -> Callable[[str, Json], float]:
    def check(key: str, value: Json) -> float:
        given = number(value)
        if not least <= given <= most:
            raise ValueError(f"{key}: {given:g} is out of range; allowed: {least:g} to {most:g}")
        return float(given)

    return check


def _one_of(*known: str) -> Callable[[str, Json], str]:
    def check(key: str, value: Json) -> str:
        given = text(value)
        if given not in known:
            listed = f"; known: {', '.join(known)}" if len(known) < 10 else ""
            raise ValueError(f"{key}: unknown value {shown(given, 40)!r}{listed}")
        return given

    return check


def _name(key: str, value: Json) -> str:
    given = text(value)
    if (
        not 0 < len(given) <= MAX_NAME_CHARS
        or not given.isprintable()
        or given != given.strip()
        or set(given) & set("<>&/\\")
    ):
        raise ValueError(
            f"{key}: {shown(given, 40)!r} is not a name of 1 to {MAX_NAME_CHARS} letters, digits or spaces"
        )
    return given


def _camera(key: str, value: Json) -> int:
    given = number(value)
    if not (1 <= given <= MAX_CAMERAS and given == int(given)):
        raise ValueError(f"{key}: {given:g} is out of range; allowed: 1 to {MAX_CAMERAS}")
    return int(given)


def _flag(key: str, value: Json) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{key}: expected true or false, got {type(value).__name__}")
    return value


_second, _pixel = _ranged(0, MAX_SECONDS), _ranged(-MAX_PIXELS, MAX_PIXELS)


def _point(key: str, value: Json) -> tuple[float, float]:
    x, y = items(value)
    return _pixel(f"{key}, x", x), _pixel(f"{key}, y", y)


def _place(key: str, value: Json) -> Place:
    found = Place(
        _second("time", member(value, "time")), _pixel("x", member(value, "x")), _pixel("y", member(value, "y")),
        _camera("camera", value.get("camera", 1) if isinstance(value, Mapping) else 1),
    )  # fmt: skip
    assert isinstance(value, Mapping)
    if extra := set(value) - {"time", "x", "y", "camera"}:
        raise ValueError(f"{key}: unknown key {shown(min(extra), 40)!r}")
    return found


_CHECKS: dict[str, Callable[[str, Json], Any]] = {
    "person": _place, "into": _place, "other": _place, "until": _second, "time": _second, "name": _name, "x": _pixel,
    "y": _pixel, "left": _point, "right": _point, "start": _point, "end": _point, "on": _flag,
    "joint": _one_of(*sorted(JOINTS)), "limb": _one_of(*LIMB_NAMES, *sorted(JOINTS)),
    "limbs": _one_of("legs", "arms", "body"), "foot": _one_of("left", "right"),
    "metres": _ranged(MIN_HEIGHT_M, MAX_HEIGHT_M), "height": _ranged(0, MAX_SUPPORT_M), "camera": _camera,
}  # fmt: skip
