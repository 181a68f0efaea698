"""Defaults and names that commands and Python functions share, without imports: options are parsed fast."""

IMAGE_FPS = 30.0  # frame rate of a folder or glob of images
SEEN_SCORE = 0.3  # 2D score from which a joint counts as detected, with the networks of the presets
DRAWN_SCORE = 0.12  # 2D score from which a joint is drawn
STEM = "poses"  # start of the names of result files and of their exports
RESULT_JSON, RESULT_NPZ = f"{STEM}.json", f"{STEM}.npz"
POSES_PAGE, ANALYSIS_PAGE = f"{STEM}.html", "analysis.html"  # pages that link to each other
MAX_ID = 2**53  # upper limit of track ids; many JSON readers round larger integers
CAMERAS_FILE = "cameras.json"  # calibration of the cameras of a result
CACHE_GIGABYTES = 2.0  # maximum size of a cache folder


# All stages drop a track after a longer gap. If the person reappears, a new track begins.
MAX_TRACK_GAP_S = 1.0


WORLD, CAMERA = "world", "camera"
SPACES = (WORLD, CAMERA)
