"""Names of the possible places of the overlay's 3D inset."""

AUTO, OFF = "auto", "off"
CORNERS = ("top-right", "top-left", "bottom-right", "bottom-left")
INSETS = (AUTO, OFF, *CORNERS)
