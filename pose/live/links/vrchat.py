"""VRChat: full-body trackers by Open Sound Control.

Source: VRChat's documentation of OSC trackers. Positions in m and Euler angles in degrees, in Unity's axes; VRChat
scales the avatar to the height that the user has set there. The head is sent to align both spaces.
"""

import numpy as np

from pose.body.skeleton import NAMES
from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import LinkFrame, LinkPerson
from pose.live.links.udp import Message, OscSocket
from pose.live.links.unity import rotations_to_unity, to_unity, unity_euler

# Trackers 1 to 8, then the head.
TRACKERS = (
    "pelvis", "thorax", "left_ankle", "right_ankle", "left_knee", "right_knee", "left_elbow", "right_elbow", "head",
)  # fmt: skip
_ROWS = np.array([NAMES.index(joint) for joint in TRACKERS])


class VrchatLink:
    """Sender of the trackers of one person: the chosen one, else the person with the first place."""

    trouble = ""

    def __init__(self, address: Address) -> None:
        """Open the socket."""
        self._socket, self._person = OscSocket(address), address.person

    def send(self, frame: LinkFrame) -> None:
        """Send the trackers of the person, if present."""
        for person in frame.people:
            if person.id == self._person or (self._person is None and person.slot == 0):
                self._socket.send(messages(person))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def messages(person: LinkPerson) -> list[Message]:
    """Return the messages of one bundle."""
    places = to_unity(person.points[_ROWS]).tolist()
    angles = unity_euler(rotations_to_unity(person.rotations[_ROWS])).tolist()
    found: list[Message] = []
    for at, (place, angle) in enumerate(zip(places, angles, strict=True)):
        name = "head" if TRACKERS[at] == "head" else str(at + 1)
        found += [
            (f"/tracking/trackers/{name}/position", tuple(place)),
            (f"/tracking/trackers/{name}/rotation", tuple(angle)),
        ]
    return found


KIND = LinkKind(VrchatLink, "VRChat trackers", "osc", ("pythonosc",), 9000, takes_person=True)
