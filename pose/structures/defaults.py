"""Defaults that commands and Python functions share. Commands import this module before any heavy one."""

IMAGE_FPS = 30.0  # frame rate of a folder or glob of images
STEM = "poses"  # start of the names of result files and of their exports
RESULT_JSON, RESULT_NPZ = f"{STEM}.json", f"{STEM}.npz"
MAX_ID = 2**53  # upper limit of track ids; many JSON readers round larger integers
