"""Script for Blender, or for Python with `bpy`: converts GLB to FBX, or FBX to GLB.

Usage: blender --background --factory-startup --python blender_fbx.py -- in.glb out.fbx FRAMES_PER_SECOND START END

START and END are times in seconds.
"""

import math
import sys

import bpy


def main() -> None:
    """Convert the file given on the command line."""
    source, target, *numbers = sys.argv[sys.argv.index("--") + 1 :]
    rate, start, end = map(float, numbers)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    if target.endswith(".glb"):
        bpy.ops.import_scene.fbx(filepath=source)
        bpy.ops.export_scene.gltf(filepath=target, export_animations=False, export_rest_position_armature=True)
        return
    scene = bpy.context.scene
    scene.render.fps = max(1, round(rate))
    scene.render.fps_base = scene.render.fps / rate
    bpy.ops.import_scene.gltf(filepath=source, bone_heuristic="TEMPERANCE")
    scene.frame_start = math.ceil(rate * start - 1e-3)
    scene.frame_end = max(scene.frame_start + 1, math.floor(rate * end + 1e-3))
    # The exporter takes the bind pose from the current frame; the person must have scale 1 in it.
    scene.frame_set(scene.frame_start)
    bpy.ops.export_scene.fbx(
        filepath=target,
        object_types={"ARMATURE", "MESH", "EMPTY", "CAMERA"},
        add_leaf_bones=False,
        bake_anim_use_all_actions=False,
        bake_anim_use_nla_strips=False,
        bake_anim_simplify_factor=0.0,
        apply_scale_options="FBX_SCALE_ALL",
    )


if __name__ == "__main__":
    main()
