"""World coordinates of one camera: docs/studies/world.md, scene.md, world-live.md and moving-camera.md.

steps            people in the world, before and after every step
scene            gravity, focal length, heights and floor of simulated scenes
camera-motion    which motions of the camera are detected in rendered rooms
"""

from benchmarks.common.command import run

run("world", __doc__, {
    "steps": "world.steps", "scene": "world.scene", "camera-motion": "world.camera_motion",
})  # fmt: skip
