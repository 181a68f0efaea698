# SPDX-License-Identifier: GPL-3.0-or-later
"""Retargeting of a pose armature to an armature with the bone names of Rigify, Mixamo, Auto-Rig Pro or VRM."""

import itertools

import bpy
from mathutils import Matrix, Vector

from . import scene

_SIDES = (("left", "L", "l", "Left"), ("right", "R", "r", "Right"))


def _map(middle, limbs):
    """Map of our joints to names: five middle bones, and patterns for the limbs of a side."""
    found = dict(zip(("pelvis", "spine", "thorax", "neck", "head"), middle, strict=True))
    joints = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle")
    for side, upper, lower, title in _SIDES:
        for joint, name in zip(joints, limbs, strict=True):
            found[f"{side}_{joint}"] = name.format(U=upper, l=lower, T=title, s=side)
    return found


RIGS = {
    "Rigify (meta-rig)": _map(
        ("spine", "spine.001", "spine.003", "spine.004", "spine.006"),
        ("upper_arm.{U}", "forearm.{U}", "hand.{U}", "thigh.{U}", "shin.{U}", "foot.{U}"),
    ),
    "Rigify (FK controls)": _map(
        ("torso", "spine_fk", "chest", "neck", "head"),
        ("upper_arm_fk.{U}", "forearm_fk.{U}", "hand_fk.{U}", "thigh_fk.{U}", "shin_fk.{U}", "foot_fk.{U}"),
    ),
    "Mixamo": _map(
        ("mixamorig:Hips", "mixamorig:Spine", "mixamorig:Spine2", "mixamorig:Neck", "mixamorig:Head"),
        tuple(f"mixamorig:{{T}}{name}" for name in ("Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot")),
    ),
    "Auto-Rig Pro": _map(
        ("root.x", "spine_01.x", "spine_02.x", "neck.x", "head.x"),
        ("arm_stretch.{l}", "forearm_stretch.{l}", "hand.{l}", "thigh_stretch.{l}", "leg_stretch.{l}", "foot.{l}"),
    ),
    "VRM (VRoid)": _map(
        ("J_Bip_C_Hips", "J_Bip_C_Spine", "J_Bip_C_Chest", "J_Bip_C_Neck", "J_Bip_C_Head"),
        tuple(f"J_Bip_{{U}}_{name}" for name in ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot")),
    ),
    "VRM": _map(
        ("hips", "spine", "chest", "neck", "head"),
        tuple(f"{{s}}{name}" for name in ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot")),
    ),
}
_NEEDED = ("pelvis", "left_hip", "right_hip", "left_shoulder", "right_shoulder", "left_knee", "right_elbow")


def rig_of(target):
    """Name of the rig whose bones an armature has; None if it is unknown."""
    names = set(target.data.bones.keys())
    fitting = [rig for rig, table in RIGS.items() if all(table[joint] in names for joint in _NEEDED)]
    return max(fitting, key=lambda rig: len(names & set(RIGS[rig].values())), default=None)


def retarget(source, target):
    """Write an action for `target` that follows the action of `source`, and return it with the name of the rig.

    Raises:
        ValueError: If the source has no action, or the bones of the target are unknown.
    """
    rig = rig_of(target)
    if rig is None:
        known = ", ".join(RIGS)
        raise ValueError(f"{target.name}: its bones have the names of no known rig ({known})")
    if source.animation_data is None or source.animation_data.action is None:
        raise ValueError(f"{source.name}: has no action; import a result or record a live run first")
    table = {joint: bone for joint, bone in RIGS[rig].items() if bone in target.data.bones}
    frames = _frames(source)
    joints = {bone: joint for joint, bone in table.items()}
    ordered = [bone for bone in _parents_first(target) if bone.name in joints]
    to_target = target.matrix_world.to_3x3().normalized().inverted() @ source.matrix_world.to_3x3().normalized()
    aligned = {bone.name: _aligned(source, target, joints[bone.name], bone, to_target) for bone in ordered}
    scale = _leg(target, table) / max(_leg(source, {joint: joint for joint in table}), 1e-6)
    hips = table["pelvis"]
    turns, places = {bone.name: [] for bone in ordered}, {hips: []}
    current, scene_ = bpy.context.scene.frame_current, bpy.context.scene
    for frame in frames:
        scene_.frame_set(int(frame), subframe=frame - int(frame))
        whole = {}
        for bone in _parents_first(target):
            above = whole[bone.parent.name] if bone.parent else Matrix.Identity(3)
            rest = bone.matrix_local.to_3x3()
            if bone.parent:
                rest = bone.parent.matrix_local.to_3x3().inverted() @ rest
            if bone.name in joints:
                own = source.pose.bones[joints[bone.name]]
                turned = (
                    to_target @ own.matrix.to_3x3() @ own.bone.matrix_local.to_3x3().inverted() @ to_target.inverted()
                )
                whole[bone.name] = turned @ aligned[bone.name]
                turns[bone.name].append((rest.inverted() @ above.inverted() @ whole[bone.name]).to_quaternion())
            else:
                whole[bone.name] = above @ rest
        pelvis = source.pose.bones["pelvis"]
        moved = scale * (
            to_target @ (source.matrix_world.to_3x3().normalized().inverted() @ (source.matrix_world @ pelvis.head))
        )
        bone = target.data.bones[hips]
        places[hips].append(bone.matrix_local.to_3x3().inverted() @ (Vector(moved) - bone.head_local))
    scene_.frame_set(current)
    for name in turns:
        target.pose.bones[name].rotation_mode = "QUATERNION"
    return scene.key_motion(target, f"{source.name} on {target.name}", frames, turns, places), rig


def _aligned(source, target, joint, bone, to_target):
    """Rest rotation of a target bone, turned so that it points as the source's bone does in the source's rest pose."""
    rest = bone.matrix_local.to_3x3()
    goal = to_target @ source.data.bones[joint].matrix_local.to_3x3().col[1]
    if joint in ("pelvis", "spine", "thorax", "neck", "head", "left_ankle", "right_ankle"):
        return rest  # their axes differ between rigs, their rest poses do not
    return rest.col[1].rotation_difference(goal).to_matrix() @ rest


def _parents_first(target):
    found = [bone for bone in target.data.bones if bone.parent is None]
    for bone in found:
        found.extend(bone.children)
    return found


def _leg(owner, table):
    """Length of the left leg, in units of the armature."""
    bones = owner.data.bones
    points = [bones[table[joint]].head_local for joint in ("left_hip", "left_knee", "left_ankle") if joint in table]
    return sum((b - a).length for a, b in itertools.pairwise(points))


def _frames(source):
    """Frames of the keys of the pelvis."""
    action = source.animation_data.action
    curves = (
        action.fcurves
        if hasattr(action, "fcurves")
        else [
            curve
            for layer in action.layers
            for strip in layer.strips
            for bag in strip.channelbags
            for curve in bag.fcurves
        ]
    )
    return sorted({point.co[0] for curve in curves if "pelvis" in curve.data_path for point in curve.keyframe_points})
