"""ROS 2 messages of frames, serialised without a ROS installation.

Sources: REP-103 (x forward, y left, z up), REP-155 (topics and frames of people) and the definitions of `hri_msgs`.
File axes (x left of a person who looks along z, y up) become ROS axes by (x, y, z) to (z, x, y).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pose.body.skeleton import PARENTS
from pose.live.links.frames import LinkFrame, LinkPerson
from pose.live.result import LiveResult
from pose.structures.colours import person_colour
from pose.structures.defaults import WORLD
from pose.structures.rotations import from_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

TF, TRACKED, MARKERS, CAMERA = "/tf", "/humans/bodies/tracked", "/humans/markers", "/camera/camera_info"
ROOTS = {WORLD: "pose_world"}  # root frame of the space; otherwise `CAMERA_ROOT`
CAMERA_ROOT, OPTICAL = "pose_camera", "pose_camera_optical"
# Frame of each joint of `pose.body.skeleton.NAMES`, without `_<id>`.
FRAMES = (
    "body", "l_hip", "l_knee", "l_ankle", "r_hip", "r_knee", "r_ankle", "waist", "torso", "neck", "head",
    "l_shoulder", "l_elbow", "l_wrist", "r_shoulder", "r_elbow", "r_wrist",
)  # fmt: skip
# Points of `hri_msgs/Skeleton2D` in order; the neck is the middle of the shoulders.
SKELETON2D = (
    "nose", "neck", "right_shoulder", "right_elbow", "right_wrist", "left_shoulder", "left_elbow", "left_wrist",
    "right_hip", "right_knee", "right_ankle", "left_hip", "left_knee", "left_ankle", "left_eye", "right_eye",
    "left_ear", "right_ear",
)  # fmt: skip
DEFINITIONS = {
    "hri_msgs/msg/NormalizedPointOfInterest2D": "float32 x\nfloat32 y\nfloat32 c\n",
    "hri_msgs/msg/Skeleton2D": "std_msgs/Header header\nhri_msgs/NormalizedPointOfInterest2D[] skeleton\n",
    "hri_msgs/msg/IdsList": "std_msgs/Header header\nstring[] ids\n",
}
_LINES, _SPHERES = 5, 7  # `visualization_msgs/Marker`: LINE_LIST, SPHERE_LIST
_LIFETIME_S = 1  # time after which a marker of a person who is gone disappears
_EDGES = np.array(H36M17.edges)


class RosMessage(NamedTuple):
    """A serialised message."""

    topic: str
    kind: str  # type, such as 'tf2_msgs/msg/TFMessage'
    data: bytes  # CDR


def to_ros(points: F64) -> F64:
    """Convert points (..., 3) in file axes to ROS axes."""
    return points[..., [2, 0, 1]]


def rotations_to_ros(quaternions: F64) -> F64:
    """Convert quaternions (..., 4), w first, in file axes to ROS axes."""
    return quaternions[..., [0, 3, 1, 2]]


class RosEncoder:
    """Serialiser of frames."""

    def __init__(self) -> None:
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore

        self._store: Any = get_typestore(Stores.ROS2_HUMBLE)
        for kind, text in DEFINITIONS.items():
            self._store.register(get_types_from_msg(text, kind))

    def definition(self, kind: str) -> str:
        """Return the full definition of a message type (encoding `ros2msg`)."""
        return str(self._store.generate_msgdef(kind, ros_version=2)[0])

    def messages(self, frame: LinkFrame, stamp_ns: int) -> Iterator[RosMessage]:
        """Yield the messages of a frame, with `stamp_ns` as Unix time of the capture."""
        root = ROOTS.get(frame.space, CAMERA_ROOT)
        header = self._header(root, stamp_ns)
        optical = self._header(OPTICAL, stamp_ns)
        transforms = [self._camera_transform(frame, header)]
        for person in frame.people:
            transforms += self._transforms(person, header, stamp_ns)
        yield self._message(TF, "tf2_msgs/msg/TFMessage", transforms=transforms)
        ids = [str(person.id) for person in frame.people]
        yield self._message(TRACKED, "hri_msgs/msg/IdsList", header=header, ids=ids)
        for person in frame.people:
            points = [self._make("hri_msgs/msg/NormalizedPointOfInterest2D", x=x, y=y, c=c) for x, y, c in
                      skeleton2d(frame.live, person.row).tolist()]  # fmt: skip
            topic = f"/humans/bodies/{person.id}/skeleton2d"
            yield self._message(topic, "hri_msgs/msg/Skeleton2D", header=optical, skeleton=points)
        markers = [marker for person in frame.people for marker in self._markers(person, header)]
        yield self._message(MARKERS, "visualization_msgs/msg/MarkerArray", markers=markers)
        if frame.live.stream is not None:
            yield self._camera_info(frame.live, optical)

    def _make(self, kind: str, **values: Any) -> Any:
        return self._store.types[kind](**values)

    def _message(self, topic: str, kind: str, **values: Any) -> RosMessage:
        return RosMessage(topic, kind, bytes(self._store.serialize_cdr(self._make(kind, **values), kind)))

    def _header(self, frame_id: str, stamp_ns: int) -> Any:
        stamp = self._make("builtin_interfaces/msg/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
        return self._make("std_msgs/msg/Header", stamp=stamp, frame_id=frame_id)

    def _transform(self, header: Any, child: str, place: F64, turn: F64) -> Any:
        x, y, z = place.tolist()
        w, i, j, k = turn.tolist()
        transform = self._make(
            "geometry_msgs/msg/Transform",
            translation=self._make("geometry_msgs/msg/Vector3", x=x, y=y, z=z),
            rotation=self._make("geometry_msgs/msg/Quaternion", x=i, y=j, z=k, w=w),
        )
        return self._make(
            "geometry_msgs/msg/TransformStamped", header=header, child_frame_id=child, transform=transform
        )

    def _transforms(self, person: LinkPerson, header: Any, stamp_ns: int) -> Iterator[Any]:
        places, turns = to_ros(person.offsets), rotations_to_ros(person.local)
        for joint, (frame, parent) in enumerate(zip(FRAMES, PARENTS, strict=True)):
            if parent < 0:
                yield self._transform(header, f"{frame}_{person.id}", to_ros(person.root), turns[joint])
            else:
                above = self._header(f"{FRAMES[parent]}_{person.id}", stamp_ns)
                yield self._transform(above, f"{frame}_{person.id}", places[joint], turns[joint])

    def _camera_transform(self, frame: LinkFrame, header: Any) -> Any:
        """Return the transform of the camera's optical frame (x right, y down, z forward)."""
        rotation, position = frame.camera
        axes = np.eye(3)[[2, 0, 1]] @ rotation  # from camera axes to ROS axes
        return self._transform(header, OPTICAL, to_ros(position), from_matrix(axes))

    def _markers(self, person: LinkPerson, header: Any) -> Iterator[Any]:
        points = to_ros(person.joints)
        red, green, blue = (channel / 255 for channel in person_colour(person.id))
        colour = self._make("std_msgs/msg/ColorRGBA", r=red, g=green, b=blue, a=1.0)
        for number, (kind, size, places) in enumerate(
            ((_SPHERES, 0.05, points), (_LINES, 0.02, points[_EDGES].reshape(-1, 3)))
        ):
            yield self._make(
                "visualization_msgs/msg/Marker",
                header=header, ns=f"body_{person.id}", id=number, type=kind, action=0,
                pose=self._make(
                    "geometry_msgs/msg/Pose",
                    position=self._make("geometry_msgs/msg/Point", x=0.0, y=0.0, z=0.0),
                    orientation=self._make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0),
                ),
                scale=self._make("geometry_msgs/msg/Vector3", x=size, y=size, z=size), color=colour,
                lifetime=self._make("builtin_interfaces/msg/Duration", sec=_LIFETIME_S, nanosec=0), frame_locked=False,
                points=[self._make("geometry_msgs/msg/Point", x=x, y=y, z=z) for x, y, z in places.tolist()],
                colors=[], texture_resource="",
                texture=self._make(
                    "sensor_msgs/msg/CompressedImage", header=header, format="", data=np.zeros(0, np.uint8)
                ),
                uv_coordinates=[], text="", mesh_resource="",
                mesh_file=self._make("visualization_msgs/msg/MeshFile", filename="", data=np.zeros(0, np.uint8)),
                mesh_use_embedded_materials=False,
            )  # fmt: skip

    def _camera_info(self, live: LiveResult, header: Any) -> RosMessage:
        assert live.stream is not None
        camera = live.stream.session.camera
        matrix = np.asarray(camera.matrix, np.float64)
        projection = np.concatenate([matrix, np.zeros((3, 1))], axis=1)
        return self._message(
            CAMERA, "sensor_msgs/msg/CameraInfo", header=header, height=camera.size[1], width=camera.size[0],
            distortion_model="plumb_bob", d=np.zeros(5), k=matrix.ravel(), r=np.eye(3).ravel(), p=projection.ravel(),
            binning_x=0, binning_y=0,
            roi=self._make(
                "sensor_msgs/msg/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False
            ),
        )  # fmt: skip


def skeleton2d(live: LiveResult, row: int) -> F64:
    """Return x and y relative to the image and the confidence of the 18 points (18, 3); 0 for unknown points."""
    people, names = live.result.people, live.skeleton.names
    points = np.zeros((len(SKELETON2D), 3))
    for at, name in enumerate(SKELETON2D):
        own = ("left_shoulder", "right_shoulder") if name == "neck" else (name,)
        if all(one in names for one in own):
            joints = [names.index(one) for one in own]
            points[at, :2] = people.keypoints[row, joints].mean(axis=0) / live.size
            points[at, 2] = people.scores[row, joints].min()
    return points
