"""Maximum duration of a gap in a track, in seconds. This module has no imports, so that options are parsed quickly."""

# All stages drop a track after a longer gap. If the person reappears, a new track begins.
MAX_TRACK_GAP_S = 1.0
