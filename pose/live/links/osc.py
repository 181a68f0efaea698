"""OSC: joints, angles and events for TouchDesigner, Max, Isadora, Pure Data and others.

`docs/guides/link-osc.md` lists the addresses. Each person is one bundle, so that a datagram stays small.
"""

from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import LinkFrame, LinkPerson
from pose.live.links.udp import Message, OscSocket
from pose.structures.skeletons import H36M17


class OscLink:
    """Sender of OSC messages for all people."""

    trouble = ""

    def __init__(self, address: Address) -> None:
        """Open the socket."""
        self._socket = OscSocket(address)

    def send(self, frame: LinkFrame) -> None:
        """Send the number of people and the events, then each person."""
        found: list[Message] = [("/pose/frame", (frame.time,)), ("/pose/count", (len(frame.people),))]
        found += [(f"/pose/event/{one.kind}", (one.person, one.detail, one.count)) for one in frame.events]
        self._socket.send(found)
        for person in frame.people:
            self._socket.send(messages(person))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def messages(person: LinkPerson) -> list[Message]:
    """Return the messages of one person."""
    own = f"/pose/{person.id}"
    found: list[Message] = [
        (f"{own}/{name}", (*place, float(score)))
        for name, place, score in zip(H36M17.names, person.joints.tolist(), person.scores.tolist(), strict=True)
    ]
    found += [(f"{own}/angle/{name}", (value,)) for name, value in person.angles.items()]
    if person.face is not None:
        found += [(f"{own}/face/{name}", (value,)) for name, value in person.face.items()]
    found.append((f"{own}/repetitions", (person.repetitions, person.movement)))
    return found


KIND = LinkKind(OscLink, "TouchDesigner, Max, Isadora (OSC)", "osc", ("pythonosc",), 9001)
