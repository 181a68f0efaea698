"""MQTT: JSON per person, and entities of Home Assistant by its discovery.

Topics are below `pose/`. The connection is made, and made again, in a thread of the library; nothing waits for it.
User name and password for the broker are environment variables, because other users can read command lines.
"""

import json
import os
import re
import socket
import time
from typing import Any

from pose.live.links.base import Address, LinkKind
from pose.live.links.events import FALL
from pose.live.links.frames import LinkFrame, LinkPerson
from pose.structures.skeletons import H36M17

USER_VARIABLE, PASSWORD_VARIABLE = "POSE_MQTT_USER", "POSE_MQTT_PASSWORD"
RATE_HZ = 5.0  # messages of a person per second; events and changes of state are sent at once
DISCOVERY = "homeassistant"
STATUS, STATE = "pose/status", "pose/state"
_LOGIN = (134, 135)  # reasons of MQTT 5 that concern the login; the library translates those of MQTT 3.1.1
_MAX_QUEUED = 100  # messages that wait for the broker
# Entities: (component, key in `STATE`, name, further configuration)
_ENTITIES: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("binary_sensor", "presence", "Presence", {"device_class": "occupancy"}),
    ("binary_sensor", "possible_fall", "Possible fall", {"device_class": "safety"}),
    ("sensor", "count", "People", {"state_class": "measurement", "icon": "mdi:account-group"}),
    ("sensor", "posture", "Posture", {"icon": "mdi:human"}),
    ("sensor", "repetitions", "Repetitions", {"state_class": "total_increasing", "icon": "mdi:counter"}),
)


class MqttLink:
    """Publisher of one run."""

    def __init__(self, address: Address) -> None:
        """Start to connect in the thread of the library."""
        from paho.mqtt import client
        from paho.mqtt.enums import CallbackAPIVersion

        self._place = f"{address.host}:{address.port}"
        self._sent_at, self._state, self._refused = -1.0, "", ""
        self.trouble = ""
        self._client: Any = client.Client(CallbackAPIVersion.VERSION2, client_id=f"pose-{time.time_ns():x}")
        if user := os.environ.get(USER_VARIABLE):
            self._client.username_pw_set(user, os.environ.get(PASSWORD_VARIABLE))
        self._client.max_queued_messages_set(_MAX_QUEUED)
        self._client.reconnect_delay_set(1, 16)
        self._client.will_set(STATUS, "offline", retain=True)
        self._client.on_connect = self._connected
        self._client.on_connect_fail = lambda *_: self._lost("no broker answers")
        self._client.on_disconnect = lambda *_: self._lost(self._refused or "the broker is away")
        self._client.connect_async(address.host, address.port, keepalive=30)
        self._client.loop_start()

    def _connected(self, client: Any, _user: object, _flags: object, reason: Any, _properties: object) -> None:
        if reason.is_failure:
            login = f" ({USER_VARIABLE} and {PASSWORD_VARIABLE} set the login)" if reason.value in _LOGIN else ""
            self._refused = f"the broker refuses the connection: {str(reason).lower()}{login}"
            return  # the library disconnects, too
        self.trouble = self._refused = ""
        for topic, config in discovery().items():
            client.publish(topic, json.dumps(config), retain=True)
        client.publish(STATUS, "online", retain=True)
        self._state = ""  # send the state again

    def _lost(self, why: str) -> None:
        self.trouble = f"{why} at {self._place}; trying again"

    def send(self, frame: LinkFrame) -> None:
        """Publish people at `RATE_HZ`, and the state when it changes."""
        if not self._client.is_connected():
            return
        for event in frame.events:
            values = {"event": event.kind, "id": event.person, "detail": event.detail, "count": event.count}
            self._client.publish("pose/event", json.dumps(values))
        state = json.dumps(state_of(frame))
        if state != self._state:
            self._client.publish(STATE, state, retain=True)
            self._state = state
        now = time.monotonic()
        if now - self._sent_at < 1 / RATE_HZ:
            return
        self._sent_at = now
        for person in frame.people:
            self._client.publish(f"pose/person/{person.id}", json.dumps(person_json(person, frame)))

    def close(self) -> None:
        """Say that the run ended, and disconnect."""
        if self._client.is_connected():
            self._client.publish(STATUS, "offline", retain=True).wait_for_publish(1.0)
        self._client.disconnect()
        self._client.loop_stop()


def state_of(frame: LinkFrame) -> dict[str, object]:
    """Return the values of the entities of Home Assistant."""
    people = frame.people
    fallen = any(person.fallen for person in people) or any(event.kind == FALL for event in frame.events)
    return {
        "presence": "ON" if people else "OFF",
        "possible_fall": "ON" if fallen else "OFF",
        "count": len(people),
        "posture": people[0].posture if people else "none",
        "repetitions": max((person.repetitions for person in people), default=0),
    }


def person_json(person: LinkPerson, frame: LinkFrame) -> dict[str, object]:
    """Return the message of a person."""
    joints = zip(H36M17.names, person.joints.tolist(), person.scores.tolist(), strict=True)
    return {
        "id": person.id,
        "time": round(frame.time, 3),
        "space": frame.space,
        "posture": person.posture,
        "possible_fall": person.fallen,
        "movement": person.movement,
        "repetitions": person.repetitions,
        "height": None if person.height is None else round(person.height, 3),
        "joints": {name: [*(round(value, 4) for value in place), round(score, 3)] for name, place, score in joints},
        "angles": {name: round(value, 1) for name, value in person.angles.items()},
    }


def discovery() -> dict[str, dict[str, object]]:
    """Return the configuration messages of Home Assistant's discovery by topic."""
    node = "pose_" + re.sub(r"[^a-z0-9]", "_", socket.gethostname().lower())  # characters that discovery allows
    found: dict[str, dict[str, object]] = {}
    for component, key, name, more in _ENTITIES:
        config: dict[str, object] = {
            "name": name,
            "unique_id": f"{node}_{key}",
            "state_topic": STATE,
            "value_template": f"{{{{ value_json.{key} }}}}",
            "availability_topic": STATUS,
            "device": {"identifiers": [node], "name": "Pose", "manufacturer": "pose-run"},
            "origin": {"name": "pose-run"},
            **more,
        }
        found[f"{DISCOVERY}/{component}/{node}/{key}/config"] = config
    return found


KIND = LinkKind(MqttLink, "MQTT, Home Assistant", "mqtt", ("paho",), 1883)
