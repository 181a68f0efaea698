"""Give the motion of one character to another one, inside Blender (docs/guides/characters.md).

Needs: two armatures named SOURCE and TARGET with bones of the same names, prefixes aside; runs in Blender's Scripting
workspace.
"""

import bpy

source, target = bpy.data.objects["SOURCE"], bpy.data.objects["TARGET"]
scene = bpy.context.scene


def rest(rig, name):
    return (rig.matrix_world @ rig.data.bones[name].matrix_local).to_quaternion()


def key(name):  # the name without prefixes such as person1_mixamorig:
    return name.split(":")[-1]


sources = {key(bone.name): bone.name for bone in source.data.bones}
pairs = [(bone, sources[key(bone.name)]) for bone in target.data.bones if key(bone.name) in sources]  # parents first
turns = {bone.name: (rest(source, name).inverted(), rest(target, bone.name)) for bone, name in pairs}
hips, own_hips = pairs[0]
scale = (
    target.data.bones[hips.name].head_local.length
    * target.scale.z
    / (source.data.bones[own_hips].head_local.length * source.scale.z)
)
for frame in range(scene.frame_start, scene.frame_end + 1):
    scene.frame_set(frame)
    for bone, name in pairs:
        away, home = turns[bone.name]
        posed = (source.matrix_world @ source.pose.bones[name].matrix).to_quaternion()
        wanted = target.matrix_world.to_quaternion().inverted() @ (posed @ away @ home)
        pose = target.pose.bones[bone.name]
        pose.rotation_mode = "QUATERNION"
        place = pose.matrix.translation.copy()
        if bone == hips:
            place = target.matrix_world.inverted() @ (scale * (source.matrix_world @ source.pose.bones[name].head))
        matrix = wanted.to_matrix().to_4x4()
        matrix.translation = place
        pose.matrix = matrix
        bpy.context.view_layer.update()
        pose.keyframe_insert("rotation_quaternion", frame=frame)
        if bone == hips:
            pose.keyframe_insert("location", frame=frame)
