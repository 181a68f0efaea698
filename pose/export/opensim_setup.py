"""Setup files of OpenSim's Scale, Inverse Kinematics and Inverse Dynamics tools for markers at joint centres.

Markers of the limbs are at the origins of the model's bodies, which are joint centres in the models of this family:
Rajagopal 2016, Hamner 2010, Pose2Sim. They leave the tilt of the pelvis and the ankles free. Therefore `lumbar` is the
back joint of a pelvis that tilts as the trunk leans, `thorax` is fixed to the torso, heels and toes to the foot. Source
of the formats: OpenSim 4's user guide (Scale Tool, Inverse Kinematics Tool).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from pose.world.foot_points import DEFAULT_SHAPE

MODEL = "Rajagopal2016.osim"
SIDES = ("right", "left")
MASS = 75.337  # kg, of the unscaled model
MAX_PELVIS_M = 2.0  # the model clamps the height of the pelvis to -1 to 2 m
# Joint -> body of the model whose origin is the marker of that joint. The tools use only these markers.
_LIMBS = {
    "hip": "femur", "knee": "tibia", "ankle": "talus", "shoulder": "humerus", "elbow": "ulna", "wrist": "hand",
}  # fmt: skip
_WEIGHTS = {"hip": 10, "knee": 10, "ankle": 10, "shoulder": 10, "elbow": 5, "wrist": 5}
LUMBAR, THORAX = "lumbar", "thorax"
_OTHER_WEIGHT = 5  # of lumbar, thorax, heels and toes
# Dimensions of the model, m. HIPS, BACK: vectors from the origin of the pelvis to the midpoint of the hips and to the
# back joint. SHOULDERS: vector from the back joint to the midpoint of the shoulders. HALF_HIPS, HALF_SHOULDERS: half
# the distance between the hips and between the shoulders.
HIPS = (-0.056276, -0.07849, 0.0)
HALF_HIPS = 0.07726
BACK = (-0.1007, 0.0815, 0.0)
SHOULDERS = (0.003155, 0.3715, 0.0)
HALF_SHOULDERS = 0.17
# Length of the shank, and vector from the origin of the talus to that of the calcaneus on the right, m.
SHANK, CALCANEUS = 0.4, (-0.04877, -0.04195, 0.00792)
_MEASURED = {  # bodies scaled by ratios of distances between markers
    "pelvis": (("right_hip", "left_hip"), ("pelvis",)),
    "thigh": (("{side}_hip", "{side}_knee"), ("femur_{s}", "patella_{s}")),
    "shank": (("{side}_knee", "{side}_ankle"), ("tibia_{s}", "talus_{s}", "calcn_{s}", "toes_{s}")),
    "upper_arm": (("{side}_shoulder", "{side}_elbow"), ("humerus_{s}",)),
    "forearm": (("{side}_elbow", "{side}_wrist"), ("ulna_{s}", "radius_{s}", "hand_{s}")),
}


@dataclass(frozen=True, slots=True)
class Trunk:
    """The scale factors of torso and pelvis."""

    length: float  # factor along x (forward) and y (up)
    width: float  # factor along z (right)
    pelvis: float  # factor of the pelvis along all axes


def limb_markers() -> list[str]:
    """Return the names of the markers at joint centres of the limbs."""
    return [f"{side}_{joint}" for joint in _LIMBS for side in SIDES]


def marker_set(thorax: Sequence[float], feet: Sequence[str]) -> str:
    """Return the marker set of the unscaled model as XML, with the thorax in the torso's frame, m, and `feet`."""
    placed: list[tuple[str, str, Sequence[float]]] = [
        (f"{side}_{joint}", f"{body}_{side[0]}", (0, 0, 0)) for joint, body in _LIMBS.items() for side in SIDES
    ]
    placed += [(LUMBAR, "pelvis", BACK), (THORAX, "torso", thorax)]
    for name in feet:
        side, _, part = name.partition("_")
        at = 0 if part == "heel" else 1
        x = SHANK * DEFAULT_SHAPE.forward_offsets[at] - CALCANEUS[0]
        y = -SHANK * DEFAULT_SHAPE.ankle_heights[at] - CALCANEUS[1]
        placed.append((name, f"calcn_{side[0]}", (x, y, -CALCANEUS[2] if side == "right" else CALCANEUS[2])))
    lines = [
        f'<Marker name="{name}"><socket_parent_frame>/bodyset/{body}</socket_parent_frame>'
        f"<location>{' '.join(f'{value:.5f}' for value in place)}</location><fixed>true</fixed></Marker>"
        for name, body, place in placed
    ]
    return _document(f'<MarkerSet name="joints"><objects>{"".join(lines)}</objects></MarkerSet>')


def scale_setup(name: str, trunk: Trunk, span: tuple[float, float]) -> str:
    """Return the content of the setup file of the Scale tool."""
    measurements, scales = [], [_manual("torso", (trunk.length, trunk.length, trunk.width))]
    for measure, ((first, second), bodies) in _MEASURED.items():
        sides = SIDES if "{side}" in first else SIDES[:1]
        ends = [(side, first.format(side=side), second.format(side=side)) for side in sides]
        pairs = "".join(
            f'<MarkerPair name="{side}"><markers>{one} {other}</markers></MarkerPair>' for side, one, other in ends
        )
        names = dict.fromkeys(body.format(s=side[0]) for body in bodies for side in SIDES)
        scaled = "".join(f'<BodyScale name="{body}"><axes>X Y Z</axes></BodyScale>' for body in names)
        measurements.append(
            f'<Measurement name="{measure}"><apply>true</apply><MarkerPairSet name="pairs"><objects>{pairs}</objects>'
            f'</MarkerPairSet><BodyScaleSet name="bodies"><objects>{scaled}</objects></BodyScaleSet></Measurement>'
        )
    time = f"<time_range>{span[0]:.6f} {span[1]:.6f}</time_range>"
    return _document(
        f'<ScaleTool name="{escape(name)}"><mass>{MASS:g}</mass><height>-1</height><age>-1</age>'
        f'<GenericModelMaker name=""><model_file>{MODEL}</model_file><marker_set_file>markers.xml</marker_set_file>'
        '</GenericModelMaker><ModelScaler name=""><apply>true</apply>'
        "<scaling_order> measurements manualScale</scaling_order>"
        f'<MeasurementSet name="joints"><objects>{"".join(measurements)}</objects></MeasurementSet>'
        f'<ScaleSet name="joints"><objects>{"".join(scales)}</objects></ScaleSet>'
        f"<marker_file>markers.trc</marker_file>{time}"
        "<preserve_mass_distribution>true</preserve_mass_distribution><output_model_file>scaled.osim</output_model_file>"
        "<output_scale_file>scale-factors.xml</output_scale_file></ModelScaler></ScaleTool>"
    )


def ik_setup(span: tuple[float, float], feet: Sequence[str]) -> str:
    """Return the content of the setup file of the Inverse Kinematics tool."""
    weights = {f"{side}_{joint}": weight for joint, weight in _WEIGHTS.items() for side in SIDES}
    weights |= dict.fromkeys((LUMBAR, THORAX, *feet), _OTHER_WEIGHT)
    tasks = "".join(
        f'<IKMarkerTask name="{name}"><apply>true</apply><weight>{weight}</weight></IKMarkerTask>'
        for name, weight in weights.items()
    )
    return _document(
        '<InverseKinematicsTool name="ik"><results_directory>./</results_directory><model_file>scaled.osim</model_file>'
        f"<time_range>{span[0]:.6f} {span[1]:.6f}</time_range><output_motion_file>ik.mot</output_motion_file>"
        f'<report_errors>true</report_errors><IKTaskSet name="joints"><objects>{tasks}</objects></IKTaskSet>'
        "<marker_file>markers.trc</marker_file><constraint_weight>Inf</constraint_weight><accuracy>1e-5</accuracy>"
        "</InverseKinematicsTool>"
    )


def loads_setup(letters: Sequence[str]) -> str:
    """Return the description of the columns of `forces.mot`, for feet with the letters r and l."""
    forces = "".join(
        f'<ExternalForce name="{letter}"><applied_to_body>calcn_{letter}</applied_to_body>'
        "<force_expressed_in_body>ground</force_expressed_in_body>"
        "<point_expressed_in_body>ground</point_expressed_in_body>"
        f"<force_identifier>ground_force_{letter}_v</force_identifier>"
        f"<point_identifier>ground_force_{letter}_p</point_identifier>"
        f"<torque_identifier>ground_torque_{letter}_</torque_identifier></ExternalForce>"
        for letter in letters
    )
    return _document(
        f'<ExternalLoads name="forces"><objects>{forces}</objects><datafile>forces.mot</datafile></ExternalLoads>'
    )


def dynamics_setup(span: tuple[float, float], cutoff_hz: float) -> str:
    """Return the content of the setup file of the Inverse Dynamics tool."""
    return _document(
        '<InverseDynamicsTool name="id"><results_directory>./</results_directory><model_file>scaled.osim</model_file>'
        f"<time_range>{span[0]:.6f} {span[1]:.6f}</time_range><forces_to_exclude>Muscles</forces_to_exclude>"
        "<external_loads_file>loads.xml</external_loads_file><coordinates_file>ik.mot</coordinates_file>"
        f"<lowpass_cutoff_frequency_for_coordinates>{cutoff_hz:g}</lowpass_cutoff_frequency_for_coordinates>"
        "<output_gen_force_file>id.sto</output_gen_force_file></InverseDynamicsTool>"
    )


def _manual(body: str, factors: tuple[float, float, float]) -> str:
    text = " ".join(f"{factor:.5f}" for factor in factors)
    return f'<Scale name="{body}"><scales>{text}</scales><segment>{body}</segment><apply>true</apply></Scale>'


def _document(content: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<OpenSimDocument Version="40500">{content}</OpenSimDocument>\n'
