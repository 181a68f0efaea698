"""Run by Blender's Python: import a file, print where the bones' heads are in ten frames (y up, metres), as JSON."""

import json
import sys

import bpy

path, scale = sys.argv[1], float(sys.argv[2])
bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
if path.endswith(".bvh"):
    bpy.ops.import_anim.bvh(
        filepath=path,
        global_scale=scale,
        update_scene_fps=True,
        update_scene_duration=True,
        axis_up="Y",
        axis_forward="-Z",
    )
else:
    scene.render.fps = int(sys.argv[3])
    bpy.ops.import_scene.gltf(filepath=path)
armatures = sorted((o for o in scene.objects if o.type == "ARMATURE"), key=lambda o: o.name)
actions = list(bpy.data.actions)
first = min(a.frame_range[0] for a in actions)
last = max(a.frame_range[1] for a in actions)
frames = [round(first + (last - first) * step / 9) for step in range(10)]
people = []
for armature in armatures:
    heads = []
    for frame in frames:
        scene.frame_set(frame)
        bpy.context.view_layer.update()
        matrix = armature.matrix_world
        # Blender has z up.
        places = {b.name: matrix @ b.head for b in armature.pose.bones}
        heads.append({name.removeprefix(f"{armature.name}_"): [p.x, p.z, -p.y] for name, p in places.items()})
    people.append({"name": armature.name, "bones": len(armature.pose.bones), "heads": heads})
fps = scene.render.fps / scene.render.fps_base
print("RESULT" + json.dumps({"first": first, "last": last, "frames": frames, "fps": fps, "people": people}))
