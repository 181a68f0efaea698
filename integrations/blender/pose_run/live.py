# SPDX-License-Identifier: GPL-3.0-or-later
"""Receiver of a live run: `pose-webcam --udp 127.0.0.1:9000`."""

import json
import socket

import numpy as np

from . import scene, skeleton

MAX_MESSAGES = 200  # messages that one update reads
MAX_PEOPLE = 16
MAX_CHANGE_M = 0.01  # change of a bone length after which an armature is made again


class Receiver:
    """Socket on a port of this computer, and the armatures of the people it receives."""

    def __init__(self, port):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise ValueError(f"port {port}: {error.strerror}") from error
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self.armatures = {}  # armature names by id; the user may delete an armature meanwhile
        self._offsets = {}  # bone lengths of the armatures, by id
        self.recorded = None  # {id: [(time, bases, place)]} while recording

    def update(self, objects):
        """Read what has arrived, pose the armatures, and return the number of messages."""
        newest, count = {}, 0
        while count < MAX_MESSAGES:
            try:
                data = self._socket.recv(65536)
            except (BlockingIOError, ConnectionError):
                break
            count += 1
            message = _message(data)
            if message is not None:
                newest[message["id"]] = message
                if self.recorded is not None:
                    self.recorded.setdefault(message["id"], []).append(message)
        for number, message in newest.items():
            owner = self._armature(number, message, objects)
            if owner is not None:
                scene.pose(owner, skeleton.matrix_of(message["bone_rotations"]), np.array(message["bone_root"], float))
        return count

    def _armature(self, number, message, objects):
        owner, offsets = objects.get(self.armatures.get(number, "")), np.array(message["bone_offsets"], float)
        changed = owner is not None and np.abs(offsets - self._offsets[number]).max() > MAX_CHANGE_M
        if changed and self.recorded is None:  # bone lengths settle in a person's first frames
            objects.remove(owner)
            owner = None
        if owner is None and (number in self.armatures or len(self.armatures) < MAX_PEOPLE):
            owner = scene.make_armature(f"Live {number}", offsets)
            self.armatures[number], self._offsets[number] = owner.name, offsets
        return owner

    def record(self):
        """Begin a recording."""
        self.recorded = {}

    def finish(self, objects, fps):
        """End the recording, write an action for each person, and return the number of frames of the longest."""
        recorded, self.recorded = self.recorded or {}, None
        begin = min((messages[0]["time"] for messages in recorded.values()), default=0.0)
        longest = 0
        for number, messages in recorded.items():
            owner = objects.get(self.armatures.get(number, ""))
            if owner is None:
                continue
            by_time = {message["time"]: message for message in messages}  # a refined frame replaces the newest estimate
            turns, places, frames = {joint: [] for joint in skeleton.NAMES}, [], []
            for time in sorted(by_time):
                message = by_time[time]
                found, place = scene.bases(
                    owner, skeleton.matrix_of(message["bone_rotations"]), np.array(message["bone_root"], float)
                )
                for joint, turn in zip(skeleton.NAMES, found, strict=True):
                    turns[joint].append(turn)
                places.append(place)
                frames.append(1 + (time - begin) * fps)
            scene.key_motion(owner, owner.name, frames, turns, {"pelvis": places})
            longest = max(longest, round(frames[-1]))
        return longest

    def close(self):
        """Close the socket."""
        self._socket.close()


def _message(data):
    """The message of a person with bones; None for anything else."""
    try:
        message = json.loads(data)
        if (
            message.get("format") != "pose-live"
            or message["type"] != "pose"
            or tuple(message["bones"]) != skeleton.NAMES
        ):
            return None
        numbers = [np.asarray(message[key], float) for key in ("bone_rotations", "bone_offsets", "bone_root")]
        shapes = [one.shape for one in numbers] == [(17, 4), (17, 3), (3,)]
        return message if shapes and all(np.isfinite(one).all() for one in numbers) else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
