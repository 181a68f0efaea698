"""Run by a Python with `bpy`: uses the extension as a user does, and prints what the scene then has, as JSON.

blender_checks.py FOLDER RESULT WAY
"""

import json
import socket
import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, sys.argv[1])
import pose_run
from pose_run import live, retarget, scene, skeleton


def joints_of(owner, frames):
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append([list(owner.matrix_world @ owner.pose.bones[name].head) for name in skeleton.NAMES])
    return found


def imported(result):
    bpy.context.scene.pose_run.folder = str(result)
    assert bpy.ops.pose_run.import_result() == {"FINISHED"}
    return [one for one in bpy.data.objects if one.type == "ARMATURE" and "pose_run" in one]


def check_import(result):
    people = imported(result)
    camera = bpy.context.scene.camera
    render = bpy.context.scene.render
    looks = []
    for frame in (1, bpy.context.scene.frame_end):
        bpy.context.scene.frame_set(frame)
        turn = camera.matrix_world.to_3x3()
        looks.append([list(camera.matrix_world.translation), list(-turn.col[2]), list(turn.col[1])])
    backgrounds = camera.data.background_images
    return {
        "names": [one.name for one in people],
        "joints": joints_of(people[0], range(1, bpy.context.scene.frame_end + 1)),
        "fps": render.fps / render.fps_base,
        "range": [bpy.context.scene.frame_start, bpy.context.scene.frame_end],
        "size": [render.resolution_x, render.resolution_y],
        "camera": looks,
        "focal_px": camera.data.lens * render.resolution_x / camera.data.sensor_width,
        "video": Path(backgrounds[0].clip.filepath).name if len(backgrounds) else None,
        "meshes": sum(one.type == "MESH" for one in bpy.data.objects),
    }


def check_live(messages):
    receiver = live.Receiver(0)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.sendto(b"no json", ("127.0.0.1", receiver.port))
    for at, text in enumerate(messages):
        if at == len(messages) // 2:
            receiver.record()
        sender.sendto(text.encode(), ("127.0.0.1", receiver.port))
        receiver.update(bpy.data.objects)
    bpy.context.view_layer.update()
    owner = bpy.data.objects["Live 1"]
    last = [list(owner.matrix_world @ owner.pose.bones[name].head) for name in skeleton.NAMES]
    frames = receiver.finish(bpy.data.objects, 30.0)
    try:
        live.Receiver(receiver.port)
        refused = ""
    except ValueError as error:
        refused = str(error)
    receiver.close()
    sender.close()
    return {"last": last, "frames": frames, "recorded": joints_of(owner, [1, frames]), "refused": refused}


def make_target(names, a_pose):
    """An armature of 1.5 times the size, with the bones of a rig, in an A-pose if asked."""
    offsets = np.zeros((17, 3))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        offsets[skeleton.NAMES.index(f"{side}_hip")] = sign * 0.15, 0, 0
        offsets[skeleton.NAMES.index(f"{side}_knee")] = 0, -0.645, 0
        offsets[skeleton.NAMES.index(f"{side}_ankle")] = 0, -0.645, 0
        offsets[skeleton.NAMES.index(f"{side}_shoulder")] = sign * 0.25, 0, 0
        down = -0.25 if a_pose else 0.0
        offsets[skeleton.NAMES.index(f"{side}_elbow")] = sign * 0.35, down, 0
        offsets[skeleton.NAMES.index(f"{side}_wrist")] = sign * 0.35, down, 0
    for name, length in (("spine", 0.35), ("thorax", 0.4), ("neck", 0.15), ("head", 0.15)):
        offsets[skeleton.NAMES.index(name), 1] = length
    owner = scene.make_armature("Target", offsets)
    del owner["pose_run"]
    for joint in names:
        owner.data.bones[joint].name = f"old_{joint}"
    for joint, name in names.items():
        owner.data.bones[f"old_{joint}"].name = name
    return owner


def check_retarget(result):
    (source, *_) = imported(result)
    found = {}
    for rig, names in retarget.RIGS.items():
        for a_pose in (False, True):
            target = make_target(names, a_pose)
            bpy.context.view_layer.objects.active = target
            bpy.context.scene.pose_run.source = source
            assert bpy.ops.pose_run.retarget() == {"FINISHED"}
            worst = 0.0
            for frame in range(1, bpy.context.scene.frame_end + 1):
                bpy.context.scene.frame_set(frame)
                for joint in ("left_shoulder", "left_elbow", "right_elbow", "left_hip", "right_knee"):
                    mine = source.matrix_world.to_3x3() @ source.pose.bones[joint].matrix.to_3x3().col[1]
                    theirs = target.matrix_world.to_3x3() @ target.pose.bones[names[joint]].matrix.to_3x3().col[1]
                    worst = max(worst, mine.angle(theirs))
            found[f"{rig}, {'A' if a_pose else 'T'}-pose"] = worst
            bpy.data.objects.remove(target)
    odd = make_target({}, False)
    for bone in odd.data.bones:
        bone.name = f"odd_{bone.name}"
    bpy.context.view_layer.objects.active = odd
    try:
        bpy.ops.pose_run.retarget()
        error = ""
    except RuntimeError as problem:
        error = str(problem)
    return {"degrees": {rig: float(np.degrees(angle)) for rig, angle in found.items()}, "error": error}


def check_errors(result):
    bpy.context.scene.pose_run.folder = str(Path(result).parent / "nothing")
    try:
        bpy.ops.pose_run.import_result()
    except RuntimeError as error:
        return {"error": str(error), "objects": len(bpy.data.objects)}
    return {"error": ""}


def check_undo(result):
    counts = [len(bpy.data.objects)]
    bpy.context.scene.pose_run.folder = str(result)
    bpy.ops.ed.undo_push(message="before")
    assert bpy.ops.pose_run.import_result("EXEC_DEFAULT", True) == {"FINISHED"}
    counts.append(len(bpy.data.objects))
    meshes = sum(one.type == "MESH" for one in bpy.data.objects)
    bpy.ops.ed.undo()
    return {"objects": [*counts, len(bpy.data.objects)], "meshes": meshes, "version": list(bpy.app.version)}


bpy.ops.wm.read_factory_settings(use_empty=True)
pose_run.register()
way = sys.argv[3]
if way == "live":
    found = check_live(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
else:
    found = {"import": check_import, "retarget": check_retarget, "errors": check_errors, "undo": check_undo}[way](
        sys.argv[2]
    )
pose_run.unregister()
print("RESULT" + json.dumps(found))
