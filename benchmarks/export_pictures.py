"""Images of an exported GLB as Blender shows it; run by a Python that has Blender (`bpy`), without a display.

    python benchmarks/export_pictures.py poses.glb OUT 30 60 120     # frames, at 30 a second

All people of the file on a floor at y = 0, which `--space world` gives; one PNG a frame.
"""

import sys

import bpy
from mathutils import Vector

SIZE = (300, 420)
SAMPLES = 10


def load(path: str) -> list:
    """Import the file; its armatures."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 30
    bpy.ops.import_scene.gltf(filepath=path)
    return [thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE"]


def furnish(middle: Vector) -> None:
    """A floor, a sun, a light sky."""
    bpy.ops.mesh.primitive_plane_add(size=30, location=(middle.x, middle.y, 0))
    floor = bpy.data.materials.new("floor")
    floor.use_nodes = True
    nodes, links = floor.node_tree.nodes, floor.node_tree.links
    checker = nodes.new("ShaderNodeTexChecker")
    checker.inputs["Scale"].default_value = 30  # a square a metre
    checker.inputs["Color1"].default_value = (0.55, 0.6, 0.66, 1)
    checker.inputs["Color2"].default_value = (0.3, 0.34, 0.4, 1)
    links.new(nodes.new("ShaderNodeTexCoord").outputs["UV"], checker.inputs["Vector"])
    links.new(checker.outputs["Color"], nodes["Principled BSDF"].inputs["Base Color"])
    bpy.context.object.data.materials.append(floor)
    bpy.ops.object.light_add(type="SUN", rotation=(0.6, 0.3, 0.4))
    bpy.context.object.data.energy = 2
    world = bpy.data.worlds.new("sky")
    bpy.context.scene.world = world
    world.use_nodes = True
    world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.75, 0.82, 0.9, 1)


def aim(middle: Vector) -> None:
    bpy.ops.object.camera_add(location=middle + Vector((1.6, -3.4, 0.7)))
    camera = bpy.context.object
    camera.rotation_euler = (middle - camera.location).to_track_quat("-Z", "Y").to_euler()
    camera.data.lens = 60
    bpy.context.scene.camera = camera


def main() -> None:
    path, out, *frames = sys.argv[1:]
    armatures = load(path)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.cycles.samples = SAMPLES
    scene.cycles.device = "CPU"
    scene.render.resolution_x, scene.render.resolution_y = SIZE
    scene.frame_set(int(frames[0]))
    pelvis = armatures[0].matrix_world @ armatures[0].pose.bones["pelvis"].head
    furnish(pelvis)
    for frame in frames:
        scene.frame_set(int(frame))
        bpy.context.view_layer.update()
        place = armatures[0].matrix_world @ armatures[0].pose.bones["pelvis"].head
        aim(Vector((place.x, place.y, 0.9)))
        scene.render.filepath = f"{out}/{int(frame):05d}.png"
        bpy.ops.render.render(write_still=True)


if __name__ == "__main__":
    main()
