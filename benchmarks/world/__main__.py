"""World coordinates of one camera: docs/studies/world.md, scene.md, world-live.md and moving-camera.md."""

from benchmarks.common.command import run

run("world", __doc__, "steps", "scene", "camera-motion")
