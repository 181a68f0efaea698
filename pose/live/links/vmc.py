"""VMC: bones of avatars in Warudo, VSeeFace, VNyan, Unity (EVMC4U) and others.

Source: the specification of the VMC protocol (protocol.vmc.info), performer to marionette. Each person has a port of
its own: the port of the address for the first, the next one for the second. Positions of bones are relative to their
parents, so that forward kinematics of a bundle gives our joints whatever the proportions of the avatar.
"""

from collections.abc import Mapping

import numpy as np

from pose.body.skeleton import NAMES
from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import FOREARMS, LinkFrame, LinkPerson
from pose.live.links.udp import Message, OscSocket
from pose.live.links.unity import BONES, FINGERS, rotations_to_unity, to_unity
from pose.structures import rotations
from pose.structures.types import F64

MAX_PEOPLE = 8  # people who get a port
_IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
# Openness of eye and mouth (`pose.structures.face_points.measures`) that count as closed and as wide open.
_EYE, _MOUTH = (0.12, 0.30), (0.03, 0.45)
_ROWS = np.array([NAMES.index(joint) for joint in BONES.values()])


class VmcLink:
    """Sender of VMC bundles, one per person and frame."""

    trouble = ""

    def __init__(self, address: Address) -> None:
        """Open the socket; `address.person` selects one person, who is then sent to the first port."""
        self._socket, self._person = OscSocket(address), address.person

    def send(self, frame: LinkFrame) -> None:
        """Send each person's bones to the port of the person."""
        for person in frame.people:
            if self._person is not None and person.id != self._person:
                continue
            slot = 0 if self._person is not None else person.slot
            if slot < MAX_PEOPLE:
                self._socket.send(messages(person, frame.time), slot)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def messages(person: LinkPerson, time: float) -> list[Message]:
    """Return the messages of one bundle."""
    positions = person.offsets[_ROWS].copy()
    positions[0] = person.root
    places = to_unity(positions).tolist()
    turns = rotations_to_unity(person.local[_ROWS])[:, [1, 2, 3, 0]].tolist()
    hands = person.fingers
    found: list[Message] = [("/VMC/Ext/OK", (1,)), ("/VMC/Ext/T", (time,)), ("/VMC/Ext/Root/Pos", ("root", *_IDENTITY))]
    for bone, place, turn in zip(BONES, places, turns, strict=True):
        if hands is not None and bone.endswith("Hand"):
            side = 0 if bone.startswith("Left") else 1
            if np.isfinite(hands[side]).all():
                found += _hand(person, hands[side], side, bone, place)
                continue
        found.append(("/VMC/Ext/Bone/Pos", (bone, *place, *turn)))
    if person.face is not None:
        found += [("/VMC/Ext/Blend/Val", (name, value)) for name, value in blends(person.face).items()]
        found.append(("/VMC/Ext/Blend/Apply", ()))
    return found


def _hand(person: LinkPerson, hand: F64, side: int, bone: str, place: list[float]) -> list[Message]:
    """Return the messages of a hand (16, 4) quaternions, with the wrist."""
    assert person.hands is not None
    turns = rotations_to_unity(hand)[:, [1, 2, 3, 0]].tolist()
    found: list[Message] = [("/VMC/Ext/Bone/Pos", (bone, *place, *turns[0]))]
    points, above = person.hands[side], rotations.multiply(person.rotations[FOREARMS[side]], hand[0])
    for finger in range(5):
        parent, parent_point = above, points[0]
        for part in range(3):
            at = 3 * finger + part
            point = points[4 * finger + part + 1]
            local = to_unity(rotations.rotate(rotations.inverse(parent), point - parent_point)).tolist()
            name = f"{'Left' if side == 0 else 'Right'}{FINGERS[at]}"
            found.append(("/VMC/Ext/Bone/Pos", (name, *local, *turns[1 + at])))
            parent, parent_point = rotations.multiply(parent, hand[1 + at]), point
    return found


def blends(face: Mapping[str, float]) -> dict[str, float]:
    """Return the values 0 to 1 of VRM's blend shapes for closed eyes and an open mouth."""
    left, right = (1 - _share(face[f"{side}_eye_open"], _EYE) for side in ("left", "right"))
    return {"Blink_L": left, "Blink_R": right, "A": _share(face["mouth_open"], _MOUTH)}


def _share(value: float, span: tuple[float, float]) -> float:
    return min(1.0, max(0.0, (value - span[0]) / (span[1] - span[0])))


KIND = LinkKind(VmcLink, "avatars (VMC)", "osc", ("pythonosc",), 39539, takes_person=True)
