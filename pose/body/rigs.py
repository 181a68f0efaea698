"""Names of a character's bones in the rigs of other programs, one column per rig.

Sources: Adobe Mixamo; Epic Games, the mannequin of Unreal Engine; Blender's Rigify (the meta-rig `Human`); VRM 1.0,
humanoid bones. The character has Mixamo's 52 bones, and every rig here has a bone for each of them.
"""

STICKS = "sticks"  # the plain skeleton without a character, with its own names
RIGS = ("mixamo", "unreal", "rigify", "vrm", "plain", STICKS)

# Mixamo, Unreal, Rigify, VRM, plain. {s}: left or right in the spelling of the rig.
_MIDDLE = (
    ("Hips", "pelvis", "spine", "hips", "pelvis"),
    ("Spine", "spine_01", "spine.001", "spine", "spine"),
    ("Spine1", "spine_02", "spine.002", "chest", "chest"),
    ("Spine2", "spine_03", "spine.003", "upperChest", "upper_chest"),
    ("Neck", "neck_01", "spine.004", "neck", "neck"),
    ("Head", "head", "spine.006", "head", "head"),
)
_SIDES = (
    ("Shoulder", "clavicle", "shoulder", "Shoulder", "collar"),
    ("Arm", "upperarm", "upper_arm", "UpperArm", "shoulder"),
    ("ForeArm", "lowerarm", "forearm", "LowerArm", "elbow"),
    ("Hand", "hand", "hand", "Hand", "wrist"),
    ("UpLeg", "thigh", "thigh", "UpperLeg", "hip"),
    ("Leg", "calf", "shin", "LowerLeg", "knee"),
    ("Foot", "foot", "foot", "Foot", "ankle"),
    ("ToeBase", "ball", "toe", "Toes", "toes"),
)
_FINGERS = (("Index", "index"), ("Middle", "middle"), ("Ring", "ring"), ("Pinky", "pinky"), ("Thumb", "thumb"))
_VRM_PARTS = ("Proximal", "Intermediate", "Distal")
_VRM_THUMB = ("Metacarpal", "Proximal", "Distal")


def bone_names(rig: str) -> dict[str, str]:
    """Return the names of the 52 bones in `rig`, keyed by Mixamo's names without their prefix."""
    column = ("mixamo", "unreal", "rigify", "vrm", "plain").index(rig)
    names = {row[0]: row[column] for row in _MIDDLE}
    for side in ("Left", "Right"):
        names |= {f"{side}{row[0]}": _sided(row[column], rig, side) for row in _SIDES}
        for finger, low in _FINGERS:
            for number in (1, 2, 3):
                names[f"{side}Hand{finger}{number}"] = _sided(_finger(finger, low, number, rig), rig, side)
    return {own: f"mixamorig:{name}" for own, name in names.items()} if rig == "mixamo" else names


def is_finger(bone: str) -> bool:
    """Return whether a bone of the character, in Mixamo's names without prefix, belongs to a finger."""
    return "Hand" in bone and not bone.endswith("Hand")


def _finger(finger: str, low: str, number: int, rig: str) -> str:
    vrm = {"Pinky": "Little"}.get(finger, finger)
    return {
        "mixamo": f"Hand{finger}{number}",
        "unreal": f"{low}_0{number}",
        "rigify": f"thumb.0{number}" if low == "thumb" else f"f_{low}.0{number}",
        "vrm": vrm + (_VRM_THUMB if finger == "Thumb" else _VRM_PARTS)[number - 1],
        "plain": f"{low}_{number}",
    }[rig]


def _sided(name: str, rig: str, side: str) -> str:
    low = side.lower()
    return {
        "mixamo": f"{side}{name}",
        "unreal": f"{name}_{low[0]}",
        "rigify": f"{name}.{side[0]}",
        "vrm": f"{low}{name}",
        "plain": f"{low}_{name}",
    }[rig]
