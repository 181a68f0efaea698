# SPDX-License-Identifier: GPL-3.0-or-later
"""Armatures, actions, camera and background in Blender. File axes (x, y, z) become Blender's (x, -z, y)."""

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from . import skeleton

TO_BLENDER = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
_TIPS = {
    "head": (0, 0.2, 0),
    "left_wrist": (0.18, 0, 0),
    "right_wrist": (-0.18, 0, 0),
    "left_ankle": (0, -0.06, 0.18),
    "right_ankle": (0, -0.06, 0.18),
}
_NEXT = {"pelvis": "spine", "spine": "thorax", "thorax": "neck", "neck": "head"} | {
    f"{side}_{a}": f"{side}_{b}"
    for side in ("left", "right")
    for a, b in (("hip", "knee"), ("knee", "ankle"), ("shoulder", "elbow"), ("elbow", "wrist"))
}


def set_scene(fps, frames):
    """Set the frame rate and the range of the scene; frame 1 is the first of the result."""
    scene = bpy.context.scene
    scene.render.fps = max(1, round(fps))
    scene.render.fps_base = scene.render.fps / fps
    scene.frame_start, scene.frame_end = 1, max(1, frames)


def rest_points(offsets):
    """Joints (17, 3) of the T-pose in Blender's axes."""
    points = np.zeros((17, 3))
    for at, parent in enumerate(skeleton.PARENTS[1:], start=1):
        points[at] = points[parent] + offsets[at]
    return points @ TO_BLENDER.T


def make_armature(name, offsets):
    """Make an armature in the T-pose, whose bones have the names of the joints at their heads."""
    data = bpy.data.armatures.new(name)
    owner = bpy.data.objects.new(name, data)
    bpy.context.collection.objects.link(owner)
    for one in bpy.context.selected_objects:
        one.select_set(False)
    bpy.context.view_layer.objects.active = owner
    owner.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    points = rest_points(offsets)
    for at, joint in enumerate(skeleton.NAMES):
        bone = data.edit_bones.new(joint)
        bone.head = points[at]
        end = points[skeleton.NAMES.index(_NEXT[joint])] if joint in _NEXT else points[at] + TO_BLENDER @ _TIPS[joint]
        if np.linalg.norm(end - points[at]) < 1e-3:
            end = points[at] + (0, 0, 0.05)
        bone.tail = end
        if skeleton.PARENTS[at] >= 0:
            bone.parent = data.edit_bones[skeleton.NAMES[skeleton.PARENTS[at]]]
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in owner.pose.bones:
        bone.rotation_mode = "QUATERNION"
    owner["pose_run"] = True
    return owner


def bases(owner, local, root):
    """Basis quaternions (17,) and the location of the pelvis for rotations (17, 3, 3) in file axes."""
    found = []
    for at, joint in enumerate(skeleton.NAMES):
        rest = owner.data.bones[joint].matrix_local.to_3x3()
        turn = Matrix((TO_BLENDER @ local[at] @ TO_BLENDER.T).tolist())
        found.append((rest.inverted() @ turn @ rest).to_quaternion())
    bone = owner.data.bones["pelvis"]
    place = bone.matrix_local.to_3x3().inverted() @ (Vector(TO_BLENDER @ root) - bone.head_local)
    return found, place


def pose(owner, local, root):
    """Set the current pose."""
    turns, place = bases(owner, local, root)
    for joint, turn in zip(skeleton.NAMES, turns, strict=True):
        owner.pose.bones[joint].rotation_quaternion = turn
    owner.pose.bones["pelvis"].location = place


def key_motion(owner, name, frames, turns, places):
    """Write an action with keys at `frames`: {bone: [quaternion]} and {bone: [location]}."""
    action = bpy.data.actions.new(name)
    owner.animation_data_create().action = action
    for bone, values in turns.items():
        kept = []
        for value in values:
            value = Quaternion(value)
            if kept and value.dot(kept[-1]) < 0:
                value.negate()
            kept.append(value)
        _curves(owner, action, f'pose.bones["{bone}"].rotation_quaternion', frames, kept, 4, bone)
    for bone, values in places.items():
        _curves(owner, action, f'pose.bones["{bone}"].location', frames, values, 3, bone)
    return action


def _curves(owner, action, path, frames, values, count, group):
    for index in range(count):
        curve = new_curve(owner, action, path, index, group)
        curve.keyframe_points.add(len(frames))
        numbers = np.empty(2 * len(frames))
        numbers[::2] = frames
        numbers[1::2] = [value[index] for value in values]
        curve.keyframe_points.foreach_set("co", numbers)
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
        curve.update()


def new_curve(owner, action, path, index, group=""):
    """Make a curve in an action of Blender 4 or, with its slots, 5."""
    if hasattr(action, "fcurve_ensure_for_datablock"):
        return action.fcurve_ensure_for_datablock(owner, path, index=index, group_name=group)
    return action.fcurves.new(path, index=index, action_group=group)


def import_person(result, person):
    """Make the armature and the action of a person; None without a pose."""
    at, joints = result.joints(person)
    if not len(at):
        return None
    offsets = skeleton.fit(joints)
    local, roots = skeleton.solve(joints, offsets)
    owner = make_armature(f"Person {person}", offsets)
    turns, places = {joint: [] for joint in skeleton.NAMES}, []
    for row in range(len(at)):
        found, place = bases(owner, local[row], roots[row])
        for joint, turn in zip(skeleton.NAMES, found, strict=True):
            turns[joint].append(turn)
        places.append(place)
    key_motion(owner, f"Person {person}", at + 1, turns, {"pelvis": places})
    return owner


def import_camera(result, frames):
    """Make the camera with its motion, and use it for the scene; None if the result has none."""
    known = result.camera()
    if known is None:
        return None
    matrix, (width, height), rotations, places, zooms = known
    data = bpy.data.cameras.new("Video camera")
    owner = bpy.data.objects.new("Video camera", data)
    bpy.context.collection.objects.link(owner)
    scene = bpy.context.scene
    scene.camera = owner
    scene.render.resolution_x, scene.render.resolution_y = width, height
    data.sensor_fit, data.sensor_width = "HORIZONTAL", 36.0
    focal = matrix[0, 0] * 36.0 / width
    data.lens = focal
    largest = max(width, height)
    data.shift_x = -(matrix[0, 2] - (width - 1) / 2) / largest
    data.shift_y = (matrix[1, 2] - (height - 1) / 2) / largest
    owner.rotation_mode = "QUATERNION"
    turned = [Matrix((TO_BLENDER @ one @ np.diag([1.0, -1, -1])).tolist()).to_quaternion() for one in rotations]
    moved = places @ TO_BLENDER.T
    owner.rotation_quaternion, owner.location = turned[0], moved[0]
    if len(turned) > 1:
        action = bpy.data.actions.new("Video camera")
        owner.animation_data_create().action = action
        kept = []
        for value in turned:
            if kept and value.dot(kept[-1]) < 0:
                value.negate()
            kept.append(value)
        numbers = np.arange(1, len(turned) + 1)
        known_rows = [row for row in range(len(turned)) if np.isfinite(rotations[row]).all()]
        _curves(owner, action, "rotation_quaternion", numbers[known_rows], [kept[row] for row in known_rows], 4, "")
        _curves(owner, action, "location", numbers[known_rows], [moved[row] for row in known_rows], 3, "")
    if np.ptp(zooms) > 0.01:
        action = bpy.data.actions.new("Video camera lens")
        data.animation_data_create().action = action
        _curves(data, action, "lens", np.arange(1, len(zooms) + 1), [[focal * zoom] for zoom in zooms], 1, "")
    return owner


def set_background(owner, video, frames):
    """Show the video behind the scene, as seen by the camera."""
    clip = bpy.data.movieclips.load(str(video))
    owner.data.show_background_images = True
    background = owner.data.background_images.new()
    background.source, background.clip = "MOVIE_CLIP", clip
    background.display_depth = "BACK"
    return background


def import_characters(path):
    """Import the characters of a GLB, without its camera, and return the new objects."""
    before = set(bpy.data.objects)
    bpy.ops.import_scene.gltf(filepath=str(path))
    new = [one for one in bpy.data.objects if one not in before]
    for one in [one for one in new if one.type == "CAMERA"]:
        new.remove(one)
        bpy.data.objects.remove(one)
    return new
