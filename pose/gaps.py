"""Maximum duration of a gap in a track. This module has no imports, so that options are parsed quickly."""

# All stages drop a track after such a gap; the person then gets a new one.
LONGEST_GAP_SECONDS = 1.0
