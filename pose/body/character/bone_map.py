"""Bones of other people's characters: which of them is which of our 52 bones.

Names are compared without separators, prefixes and case, so those of Mixamo, VRM, VRoid, Rigify, Unreal, 3ds Max Biped
and most rigs named after bones or joints are known (`pose.body.rigs` has the sources). A table names the others.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from pose.body.rigs import bone_names
from pose.errors import PoseError
from pose.utils.shown import shown

_SIDES = {"left": "Left", "l": "Left", "right": "Right", "r": "Right"}
_MIDDLE = {"hips": "Hips", "pelvis": "Hips", "hip": "Hips", "head": "Head", "neck": "Neck"}
_LIMBS = {
    "Shoulder": ("shoulder", "clavicle", "collar", "collarbone"),
    "Arm": ("arm", "upperarm", "uparm", "shldr", "humerus"),
    "ForeArm": ("forearm", "lowerarm", "elbow", "radius"),
    "Hand": ("hand", "wrist"),
    "UpLeg": ("upleg", "upperleg", "thigh", "hip", "femur"),
    "Leg": ("leg", "lowerleg", "calf", "shin", "shank", "knee", "tibia"),
    "Foot": ("foot", "ankle"),
    "ToeBase": ("toebase", "toe", "toes", "ball"),
}
_OF_LIMBS = {alias: own for own, aliases in _LIMBS.items() for alias in aliases}
_FINGERS = {"thumb": "Thumb", "index": "Index", "middle": "Middle", "ring": "Ring", "pinky": "Pinky", "little": "Pinky"}
_PARTS = {"proximal": 1, "intermediate": 2, "distal": 3}
_FINGER = re.compile(r"(?:hand|f)?(thumb|index|middle|ring|pinky|little)(?:finger)?([1-3]|[a-z]+)")
_PREFIX = re.compile(r"^(person\d+_|mixamorig\d*_?|DEF-|J_Bip_C_|J_Bip_|Bip\d* ?)")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
NEEDED = (
    "Hips",
    *(f"{s}{b}" for s in ("Left", "Right") for b in ("Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot")),
)
TABLE_NAMES = {name: own for own, name in bone_names("vrm").items()}  # names in a user's table -> our names


def bones_by_name(names: Sequence[str], among: Iterable[int]) -> dict[str, int]:
    """Return the nodes of bones recognised by name, keyed by Mixamo's names; `among` are indices, preferred first."""
    found: dict[str, int] = {}
    joints: dict[str, int] = {}  # bones with the name of the joint at their start
    for node in among:
        own, by_joint = _bone(names[node])
        if own is not None:
            (joints if by_joint else found).setdefault(own, node)
    for side in ("Left", "Right"):
        if f"{side}Arm" not in found and f"{side}ForeArm" in joints and f"{side}Shoulder" in found:
            found[f"{side}Arm"] = found.pop(f"{side}Shoulder")  # named after joints: the shoulder bears the upper arm
            if f"{side}Collar" in joints:
                found[f"{side}Shoulder"] = joints[f"{side}Collar"]
        _count_parts(found, side)
    found = {own: node for own, node in (joints | found).items() if not own.endswith("Collar")}
    if "Hips" not in found:  # Rigify's lowest bone of the spine
        lowest = [node for node in among if _PREFIX.sub("", names[node]) == "spine"]
        found |= {"Hips": lowest[0]} if lowest else {}
    if "Head" not in found:
        highest = [node for node in among if _PREFIX.sub("", names[node]) == "spine.006"]
        found |= {"Head": highest[0]} if highest else {}
    return found


def _bone(name: str) -> tuple[str | None, bool]:
    """Return our bone of that name, and whether the name is that of the joint at its start."""
    words = [word.lower() for word in _WORD.findall(_PREFIX.sub("", re.split(r"[:|]", name)[-1], count=1))]
    sides = [word for word in words if word in _SIDES]
    base = "".join(word.lstrip("0") if word.isdigit() else word for word in words if word not in _SIDES)
    if not sides:
        return _MIDDLE.get(base), False
    side = _SIDES[sides[0]]
    if base in _OF_LIMBS:
        by_joint = base in ("elbow", "wrist", "hip", "knee", "ankle", "collar")
        return f"{side}{'Collar' if base == 'collar' else _OF_LIMBS[base]}", by_joint
    if (finger := _FINGER.fullmatch(base)) is None:
        return None, False
    part = finger[2] if finger[2].isdigit() else str(_PARTS.get(finger[2], 0))
    if finger[2] == "metacarpal" and finger[1] == "thumb":
        return f"{side}HandThumbMetacarpal", False
    return (f"{side}Hand{_FINGERS[finger[1]]}{part}", False) if part != "0" else (None, False)


def _count_parts(found: dict[str, int], side: str) -> None:
    """Number the thumb of VRM 1.0, which begins with the metacarpal: proximal and distal are its second and third."""
    first = found.pop(f"{side}HandThumbMetacarpal", None)
    if first is not None and f"{side}HandThumb2" not in found:
        if f"{side}HandThumb1" in found:
            found[f"{side}HandThumb2"] = found[f"{side}HandThumb1"]
        found[f"{side}HandThumb1"] = first


def bones_by_table(table: Mapping[str, object], names: Sequence[str], file: str) -> dict[str, int]:
    """Return the nodes that a user's table names, keyed by our names; PoseError of `file` for an unknown name.

    The table has the character's bones by those of VRM 1.0, such as {"leftUpperArm": "Arm_L_01"}.
    """
    found = {}
    for standard, own in table.items():
        if standard not in TABLE_NAMES:
            raise PoseError(f"{file}: {shown(standard, 40)!r} is not a bone of VRM 1.0 ({', '.join(_EXAMPLES)})")
        if not isinstance(own, str) or own not in names:
            raise PoseError(f"{file}: the character has no bone {shown(str(own), 60)!r}; it has {some_names(names)}")
        found[TABLE_NAMES[standard]] = names.index(own)
    return found


def missing_bones(found: Mapping[str, int]) -> list[str]:
    """Return the names in VRM 1.0 of the bones that every character needs and this one lacks."""
    standard = bone_names("vrm")
    return [standard[own] for own in NEEDED if own not in found]


def some_names(names: Sequence[str], most: int = 8) -> str:
    """Return the first names as text."""
    return ", ".join(shown(name, 40) for name in names[:most]) + (", ..." if len(names) > most else "")


_EXAMPLES = ("hips", "leftUpperArm", "rightFoot")
