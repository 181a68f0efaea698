"""Options for world coordinates, and their conversion to settings of `pose.world`."""

from dataclasses import replace
from math import isnan, log
from typing import TYPE_CHECKING

from pose.config import LiveWorldConfig, WorldConfig
from pose.world.given import read_heights

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pose.results import WorldInfo
    from pose.structures.types import F64
    from pose.world.clean import Steps
    from pose.world.height import PersonSize

SPACE_HELP = "coordinate frame of the exported files; default: world if the result has one, else camera"
TRIM_HELP = "omit a person's first and last frames if they are only partly in the image, or their feet below the floor"

MIN_REPORTED_LOG_HEIGHT = 0.08  # minimum change of the logarithm of a height that is reported
MIN_UNSURE = 0.25  # smallest probability of each of child and adult that is reported


def read_up(pitch: float | None, roll: float | None) -> "F64 | None":
    """Return the direction (3,) opposite to gravity in the camera frame (y down); None without angles."""
    from pose.world.given import checked_up

    return checked_up(pitch, roll)


def steps_of(config: LiveWorldConfig, bones: bool = True, camera_known: bool = True) -> "Steps":
    """Convert the options to the settings of the transformation to world coordinates."""
    from pose.world.clean import Steps

    up = read_up(config.pitch, config.roll)
    heights = read_heights(config.height)
    steps = Steps(bones=bones, smooth=config.smooth, camera_known=camera_known, up=up, heights=heights)
    if isinstance(config, WorldConfig):
        steps = replace(steps, fill=config.fill_gaps, feet=config.foot_lock, cutoff_hz=config.cutoff)
    return steps


def unknown_heights(config: LiveWorldConfig, people: "Collection[int]") -> str:
    """Return a message about unknown ids whose body height is given; empty without any."""
    unknown = [number for number in read_heights(config.height) if number is not None and number not in people]
    if not unknown:
        return ""
    there = ", ".join(map(str, sorted(people))) or "none"
    return f"height: no person has the id {', '.join(map(str, unknown))}; ids: {there}"


def joins_line(joined: dict[int, int], dropped: set[int]) -> str:
    """Return a message about tracks that were joined to another track or dropped; empty without such tracks."""
    parts = [f"{old} into {new}" for old, new in sorted(joined.items())]
    text = f"joined tracks: {', '.join(parts)}" if parts else ""
    if dropped:
        gone = ", ".join(map(str, sorted(dropped)))
        text += f"{'; ' if text else ''}dropped rarely visible tracks: {gone}"
    return f"{text} (--no-join-tracks keeps them)" if text else ""


def doubtful_line(doubtful: "Collection[int]") -> str:
    """Return a message about tracks that may not be people; empty without such tracks."""
    if not doubtful:
        return ""
    why = "rarely visible, or unsteady over another person; possibly false; drawn dashed"
    return f"doubtful tracks: {', '.join(map(str, sorted(doubtful)))} ({why})"


def inconsistent_lines(inconsistent: "Mapping[int, Mapping[str, float]]") -> list[str]:
    """Return lines on people's limbs whose 2D contradicts the bone lengths, with the duration in s."""
    return [
        f"inconsistent limbs: person {number}, "
        + ", ".join(f"{limb.replace('_', ' ')} for {seconds:.1f} s" for limb, seconds in limbs.items())
        + " (2D bone lengths contradict the person's own; sigma is enlarged)"
        for number, limbs in sorted(inconsistent.items())
    ]


def solutions_line(
    sizes: "Mapping[int, PersonSize]", heights: "Mapping[int, tuple[float, float]]", second_degrees: float
) -> str:
    """Return a message about two scenes that explain the images, with the options that decide; empty if one does."""
    parts = []
    if second_degrees:
        parts.append(f"a vertical {second_degrees:.0f} degrees from this one (--pitch and --roll decide)")
    unsure = [n for n, size in sorted(sizes.items()) if MIN_UNSURE < size.child < 1 - MIN_UNSURE and heights[n][1]]
    if unsure:
        low, high = sizes[unsure[0]].interval
        parts.append(
            f"{'people' if len(unsure) > 1 else 'person'} {', '.join(map(str, unsure))} as adult or child "
            f"(--height {unsure[0]}:METRES decides; {low:.2f} to {high:.2f} m)"
        )
    return f"two solutions remain: {'; '.join(parts)}" if parts else ""


def contradictions_line(sizes: "Mapping[int, PersonSize]", heights: "Mapping[int, tuple[float, float]]") -> str:
    """Return a message about people whose size or floor was adjusted; empty without such people."""
    # They are adjusted if people of average height would not stand on one common floor.
    changed = {
        n: size
        for n, size in sizes.items()
        if abs(log(size.height / size.height_alone)) > MIN_REPORTED_LOG_HEIGHT or size.on_floor < 0.5
    }
    if not changed:
        return ""
    adjusted = [
        f"{n} ({heights[n][0]:.2f} +- {heights[n][1]:.2f} m)"
        if size.on_floor >= 0.5
        else f"{n} (stands on something above the floor)"
        for n, size in sorted(changed.items())
    ]
    text = "inconsistent body sizes: at average heights, people do not stand on one floor; "
    text += f"adjusted: {', '.join(adjusted)}"
    resized = [n for n in changed if changed[n].on_floor >= 0.5]
    if not resized:  # giving heights would not help then, because a height does not determine the floor
        return text
    most_uncertain = max(resized, key=lambda n: heights[n][1])
    return f"{text}; one known height would help most: --height {most_uncertain}:METRES"


def scenes_line(info: "WorldInfo") -> str:
    """Summarise the scenes between the cuts of a clip in one line; empty without cuts between scenes with people."""
    from pose.world.frame import UNKNOWN

    if not info.scenes:
        return ""
    text = f"scenes: {len(info.scenes)}, each with its own gravity and floor"
    for unknown, reason in (
        ([one for one in info.scenes if one.found_by == UNKNOWN], "gravity unknown, taken from all scenes together"),
        ([one for one in info.scenes if isnan(one.camera_height)], "camera height unknown"),
    ):
        if unknown:
            text += f"; {reason}, from {', '.join(f'{one.begin:.1f} s' for one in unknown)} on"
    return text


def world_line(info: "WorldInfo", filled: int = 0) -> str:
    """Summarise in one line how gravity and the floor were found."""
    from pose.world.frame import CALIBRATION, FEET, GIVEN, LINES, UNKNOWN

    world = info.world
    if world.found_by == UNKNOWN:
        text = "world: gravity unknown, camera assumed level (set --pitch and --roll)"
    elif world.found_by == GIVEN:
        text = "world: gravity from --pitch and --roll"
    elif world.found_by == CALIBRATION:
        text = "world: gravity from the calibration (--frame people estimates it)"
    else:
        by = {LINES: "straight lines and people", FEET: "standing feet"}.get(world.found_by, "upright bodies")
        text = f"world: gravity from {by} (+- {world.sigma_degrees:.{int(world.sigma_degrees < 1)}f} degrees)"
    if world.floor_known:
        text += f"; the camera is {-world.floor:.1f} m above the floor"
    if world.focal != 1.0:
        text += f"; focal length {world.focal:.2f} x the assumed one (+- {100 * world.focal_sigma:.0f} %), from people"
        text += f"{' and lines' if world.found_by == LINES else ''} (--intrinsics sets it)"
    if filled:
        text += f"; {filled} {'frame' if filled == 1 else 'frames'} of people filled in"
    return text
