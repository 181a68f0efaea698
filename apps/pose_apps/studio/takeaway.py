"""What can be taken away from the studio, with one sentence on who needs it."""

from importlib.util import find_spec

EXPORTS = {
    "report": "For coaches and physiotherapists: measures of the movement with charts, to read and print.",
    "html": "For everyone: a page with video, 3D and joint angles that opens without any program.",
    "overlay": "For everyone: the video with the skeletons drawn on it.",
    "compare": "For coaches: two people or two clips side by side, by repetition.",
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
