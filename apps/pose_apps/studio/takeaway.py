"""What can be taken away from the studio, with one sentence on who needs it."""

import asyncio
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pose.errors import PoseError
from pose.live.links.table import LINKS

EXPORTS = {
    "report": "For coaches and physiotherapists: measures of the movement with charts, to read and print.",
    "html": "For everyone: a page with video, 3D and joint angles that opens without any program.",
    "overlay": "For everyone: the video with the skeletons drawn on it.",
    "compare": "For coaches: the measures of two people or two clips, by repetition.",
    "angles": "For spreadsheets: the joint angles of every frame.",
    "csv": "For spreadsheets and statistics: the position of every joint in every frame.",
    "glb": "For animators: characters with their motion for Blender, Unity, Unreal and browsers.",
    "bvh": "For animators: the motion of a skeleton for nearly every animation program.",
    "fbx": "For animators: characters for Maya, MotionBuilder and game engines.",
    "usd": "For studios: characters for Omniverse, Houdini and Maya.",
    "trc": "For biomechanics: marker positions for OpenSim.",
    "c3d": "For motion laboratories: markers for Visual3D, Mokka and MATLAB.",
    "opensim": "For biomechanics: markers and a set-up for inverse kinematics in OpenSim.",
    "coco": "For machine learning: 2D joints as COCO annotations.",
    "npz": "For Python: everything, as pose-run writes it.",
}
if find_spec("bpy") is None:
    del EXPORTS["fbx"]
if find_spec("pxr") is None:
    del EXPORTS["usd"]
# Formats that a browser shows; the others are files.
SHOWN = {"report", "html", "compare"}
# Links that send in real time, with what they are for; those whose packages are installed.
LIVE = {
    "vmc": "For animators: characters in VSeeFace, Warudo, Unity and Unreal.",
    "vrchat": "For VRChat: trackers of one person.",
    "osc": "For TouchDesigner, Max and other programs with OSC.",
    "lsl": "For laboratories: streams of the Lab Streaming Layer.",
    "mqtt": "For smart homes and Node-RED.",
    "foxglove": "For robotics: Foxglove Studio.",
}
_IMPORT = "import bpy, sys; bpy.ops.import_scene.gltf(filepath=sys.argv[-1])"


def live_links() -> Iterator[tuple[str, str]]:
    """Yield name and purpose of the links whose packages are installed."""
    for name, purpose in LIVE.items():
        if all(find_spec(module) is not None for module in LINKS[name].modules):
            yield name, purpose


def blender() -> str | None:
    """Return the path of Blender's program; None if it is not installed."""
    return shutil.which("blender")


async def open_in_blender(characters: Path) -> None:
    """Start Blender with the characters of a GLB file.

    Raises:
        PoseError: If Blender is not installed, or cannot be started.
    """
    program = blender()
    if program is None:
        raise PoseError("Blender is not installed, or its folder is not in PATH")
    nowhere = asyncio.subprocess.DEVNULL
    try:
        await asyncio.create_subprocess_exec(
            program, "--python-expr", _IMPORT, "--", str(characters), stdin=nowhere, stdout=nowhere, stderr=nowhere,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise PoseError(f"{program}: {error.strerror}") from error
