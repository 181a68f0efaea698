# SPDX-License-Identifier: GPL-3.0-or-later
"""Panel *Pose* in the sidebar of the 3D view: import results, receive a live run, retarget."""

import bpy
from bpy.props import BoolProperty, IntProperty, PointerProperty, StringProperty

from . import live, retarget, scene
from .result import Result

INTERVAL_S = 1 / 60  # interval of the timer that reads live messages
_receiver = None


class PoseSettings(bpy.types.PropertyGroup):
    """Settings of the panel."""

    folder: StringProperty(name="Result", description="Folder of a result of pose-run", subtype="DIR_PATH")
    characters: BoolProperty(name="Characters", description="Import poses.glb if the folder has it", default=True)
    background: BoolProperty(name="Video", description="Show the video behind the scene", default=True)
    port: IntProperty(name="Port", description="Port of pose-webcam --udp", default=9000, min=1, max=65535)
    source: PointerProperty(
        name="From",
        description="Armature with the motion",
        type=bpy.types.Object,
        poll=lambda _, one: one.type == "ARMATURE" and "pose_run" in one,
    )


class POSE_OT_import(bpy.types.Operator):
    """Import people, camera and video of a result."""

    bl_idname = "pose_run.import_result"
    bl_label = "Import result"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        settings = context.scene.pose_run
        try:
            result = Result(bpy.path.abspath(settings.folder))
        except ValueError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        scene.set_scene(result.fps, len(result.times))
        people = [owner for number in result.people if (owner := scene.import_person(result, number)) is not None]
        glb = result.characters()
        if settings.characters and glb is not None:
            scene.import_characters(glb)
        camera = scene.import_camera(result, len(result.times))
        video = result.video()
        if settings.background and camera is not None and video is not None:
            scene.set_background(camera, video, len(result.times))
        if people:
            settings.source = people[0]
        self.report({"INFO"}, f"{len(people)} people, {len(result.times)} frames")
        return {"FINISHED"}


class POSE_OT_receive(bpy.types.Operator):
    """Receive a live run, or stop."""

    bl_idname = "pose_run.receive"
    bl_label = "Receive"

    def execute(self, context):
        global _receiver
        if _receiver is not None:
            stop()
            return {"FINISHED"}
        try:
            _receiver = live.Receiver(context.scene.pose_run.port)
        except ValueError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        bpy.app.timers.register(_tick)
        return {"FINISHED"}


class POSE_OT_record(bpy.types.Operator):
    """Record the live run as actions, or finish."""

    bl_idname = "pose_run.record"
    bl_label = "Record"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        return _receiver is not None

    def execute(self, context):
        if _receiver.recorded is None:
            _receiver.record()
            return {"FINISHED"}
        render = context.scene.render
        longest = _receiver.finish(bpy.data.objects, render.fps / render.fps_base)
        context.scene.frame_end = max(1, longest)
        self.report({"INFO"}, f"recorded {longest} frames")
        return {"FINISHED"}


class POSE_OT_retarget(bpy.types.Operator):
    """Move the selected armature like the source."""

    bl_idname = "pose_run.retarget"
    bl_label = "Retarget to selected"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        source, target = context.scene.pose_run.source, context.active_object
        if source is None:
            self.report({"ERROR"}, "choose the armature with the motion")
            return {"CANCELLED"}
        if target is None or target.type != "ARMATURE" or target == source:
            self.report({"ERROR"}, "select the armature to move")
            return {"CANCELLED"}
        try:
            _, rig = retarget.retarget(source, target)
        except ValueError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"{target.name}: {rig}")
        return {"FINISHED"}


class POSE_PT_panel(bpy.types.Panel):
    """The panel."""

    bl_label = "Pose"
    bl_idname = "POSE_PT_panel"
    bl_space_type, bl_region_type, bl_category = "VIEW_3D", "UI", "Pose"

    def draw(self, context):
        settings, layout = context.scene.pose_run, self.layout
        for name in ("folder", "characters", "background"):
            layout.prop(settings, name)
        layout.operator("pose_run.import_result")
        layout.separator()
        layout.prop(settings, "port")
        row = layout.row()
        row.operator("pose_run.receive", text="Stop" if _receiver else "Receive")
        is_recording = _receiver is not None and _receiver.recorded is not None
        row.operator("pose_run.record", text="Finish" if is_recording else "Record")
        layout.separator()
        layout.prop(settings, "source")
        layout.operator("pose_run.retarget")


def _tick():
    if _receiver is None:
        return None
    _receiver.update(bpy.data.objects)
    return INTERVAL_S


def stop():
    """Stop receiving."""
    global _receiver
    if _receiver is not None:
        _receiver.close()
        _receiver = None


_CLASSES = (PoseSettings, POSE_OT_import, POSE_OT_receive, POSE_OT_record, POSE_OT_retarget, POSE_PT_panel)


def register():
    """Add the panel."""
    for one in _CLASSES:
        bpy.utils.register_class(one)
    bpy.types.Scene.pose_run = PointerProperty(type=PoseSettings)


def unregister():
    """Remove the panel."""
    stop()
    del bpy.types.Scene.pose_run
    for one in reversed(_CLASSES):
        bpy.utils.unregister_class(one)
