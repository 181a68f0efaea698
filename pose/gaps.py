"""How long a gap in time may be. This module imports nothing, so that options are parsed quickly."""

# A person who is not seen for longer is forgotten by every stage and starts as a new track.
LONGEST_GAP_SECONDS = 1.0
