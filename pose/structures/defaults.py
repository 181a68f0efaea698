"""Defaults that commands and Python functions share. Commands import this module before any heavy one."""

IMAGE_FPS = 30.0  # frame rate of a folder or glob of images
STEM = "poses"  # start of the names of result files and of their exports
RESULT_JSON, RESULT_NPZ = f"{STEM}.json", f"{STEM}.npz"
CAMERAS_FILE = "cameras.json"  # calibration of the cameras of a result
CACHE_GIGABYTES = 2.0  # maximum size of a cache folder
