"""USD (binary `.usdc`): all people in one stage, as UsdSkel characters or stick figures with one animation each.

Units are metres, with y up. Time codes count frames at the median frame rate of the recording. Joint names are
converted to valid identifiers, as USD requires. Source: Pixar and AOUSD, UsdSkel: Introduction to Skeletons, and the
usd-core wheel that writes the file.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pose.body.character.look import SHAPE_NOTE, character_look
from pose.body.figures import Look, presence, sticks
from pose.body.rigs import STICKS
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.structures.colours import person_colour
from pose.structures.rotations import same_sign
from pose.utils.whole_file import whole_file

if TYPE_CHECKING:
    from pxr import Usd, UsdSkel

_XYZW = [1, 2, 3, 0]  # USD's arrays of quaternions are x y z w


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the people with the ids `people` to the USD file `target`, and return notes for the export summary."""
    from pxr import Gf, Usd, UsdGeom

    start, rate = float(recording.timeline.times[0]), _rate(recording.timeline.times)
    tracks = [recording.track(person, recording.timeline) for person in people]
    look_of = sticks if recording.rig == STICKS else character_look(recording.rig)
    looks = [look_of(track) for track in tracks if track is not None]
    with whole_file(target) as hidden:
        named = hidden.with_name(f"{hidden.name}.usdc")  # the library derives the format from the file name
        stage = Usd.Stage.CreateNew(str(named))
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(rate)
        stage.SetFramesPerSecond(rate)
        stage.SetStartTimeCode(0.0)
        stage.SetEndTimeCode(rate * (float(recording.timeline.times[-1]) - start))
        world = UsdGeom.Xform.Define(stage, "/World")
        world.GetPrim().SetMetadata("comment", recording.space.note)
        stage.SetDefaultPrim(world.GetPrim())
        for look in looks:
            _write_person(stage, look, start, rate, Gf)
        stage.GetRootLayer().Save()
        del stage, world
        named.replace(hidden)
    notes = [f"person {look.track.person}: {look.note()}" for look in looks]
    notes += [] if recording.rig == STICKS or not notes else [SHAPE_NOTE]
    return [f"metres; y up; {rate:g} time codes a second, 0 is the start of the result", *notes]


def _rate(times: NDArray[np.float64]) -> float:
    return 30.0 if len(times) < 2 else float(f"{1 / np.median(np.diff(times)):.4g}")


def _write_person(stage: "Usd.Stage", look: Look, start: float, rate: float, gf: Any) -> None:
    from pxr import UsdGeom, UsdSkel, Vt

    path = f"/World/person{look.track.person}"
    root = UsdSkel.Root.Define(stage, path)
    shown_at, shown = presence(look.track, start)
    visible = UsdGeom.Imageable(root).CreateVisibilityAttr()
    for time, there in zip(shown_at.tolist(), shown.tolist(), strict=True):
        visible.Set(UsdGeom.Tokens.inherited if there else UsdGeom.Tokens.invisible, rate * time)
    joints = _joints(look)
    offsets = look.heads - np.where(np.arange(len(joints))[:, None] > 0, look.heads[np.maximum(look.parents, 0)], 0)
    skeleton = UsdSkel.Skeleton.Define(stage, f"{path}/skeleton")
    skeleton.CreateJointsAttr(joints)
    skeleton.CreateBindTransformsAttr(_translations(look.heads, gf))
    skeleton.CreateRestTransformsAttr(_translations(offsets, gf))
    mesh = _mesh(stage, look, f"{path}/body")
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateJointIndicesPrimvar(False, 4).Set(Vt.IntArray.FromNumpy(look.bones.astype(np.int32).ravel()))
    binding.CreateJointWeightsPrimvar(False, 4).Set(Vt.FloatArray.FromNumpy(look.weights.ravel()))
    binding.CreateGeomBindTransformAttr(gf.Matrix4d(1.0))
    binding.CreateSkeletonRel().AddTarget(skeleton.GetPath())
    motion = UsdSkel.Animation.Define(stage, f"{path}/motion")
    _write_motion(motion, look, offsets, start, rate)
    UsdSkel.BindingAPI.Apply(skeleton.GetPrim()).CreateAnimationSourceRel().AddTarget(motion.GetPath())


def _write_motion(
    motion: "UsdSkel.Animation", look: Look, offsets: NDArray[np.float64], start: float, rate: float
) -> None:
    from pxr import Vt

    joints = _joints(look)
    motion.CreateJointsAttr(joints)
    motion.CreateScalesAttr(Vt.Vec3hArray(len(joints), (1.0, 1.0, 1.0)))
    translations, rotations = motion.CreateTranslationsAttr(), motion.CreateRotationsAttr()
    translation_row, previous = offsets.astype(np.float32), None
    for span, found in look.spans():
        quaternions = same_sign(found.quaternions[span.known], previous)
        if not len(quaternions):
            continue
        previous = quaternions[-1]
        still = np.setdiff1d(np.arange(len(joints)), np.asarray(look.moving))
        quaternions[:, still] = (1.0, 0.0, 0.0, 0.0)
        codes = (rate * (span.times[span.known] - start)).tolist()
        for code, root, row in zip(
            codes, found.root[span.known], quaternions[..., _XYZW].astype(np.float32), strict=True
        ):
            translation_row[0] = root
            translations.Set(Vt.Vec3fArray.FromNumpy(translation_row), code)
            rotations.Set(Vt.QuatfArray.FromNumpy(np.ascontiguousarray(row)), code)


def _mesh(stage: "Usd.Stage", look: Look, path: str) -> Any:
    from pxr import Sdf, UsdGeom, UsdShade, Vt

    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(look.vertices))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray(len(look.triangles), 3))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(look.triangles.astype(np.int32).ravel()))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.stack([look.vertices.min(axis=0), look.vertices.max(axis=0)])))
    if look.normals is not None:
        mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(look.normals))
        mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    material = UsdShade.Material.Define(stage, f"{path}_material")
    shader = UsdShade.Shader.Define(stage, f"{path}_material/surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    colour = tuple((value / 255) ** 2.2 for value in person_colour(look.track.person))
    shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(colour)
    shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.8)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    return mesh


def _joints(look: Look) -> list[str]:
    """Return the path of each joint from the root, such as `Hips/Spine`."""
    paths: list[str] = []
    for name, parent in zip(look.names, look.parents, strict=True):
        own = re.sub(r"\W", "_", name)
        paths.append(own if parent < 0 else f"{paths[parent]}/{own}")
    return paths


def _translations(positions: NDArray[np.float64], gf: Any) -> list[Any]:
    return [gf.Matrix4d(1.0).SetTranslate(gf.Vec3d(*position)) for position in positions.tolist()]


FORMAT = SceneFormat(".usdc", write, extra="usd", modules=("pxr",), options=("rig", "foot_lock"))
