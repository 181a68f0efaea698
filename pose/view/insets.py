"""Where the 3D inset of the overlay can lie."""

AUTO, OFF = "auto", "off"
CORNERS = ("top-right", "top-left", "bottom-right", "bottom-left")
INSETS = (AUTO, OFF, *CORNERS)
