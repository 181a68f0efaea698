"""The overlay: 2D skeletons coloured by side, ids, the time, and the 3D inset, drawn on the frames.

On landscape frames the inset lies in the corner that covers no head and the least of the people. It moves at once if it
would cover a head, and otherwise only if people stay under it. Portrait and square frames have a narrow panel beside
them instead.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.lifting.repair.person import with_lifted_sides
from pose.structures.colours import INK, PAPER, RGB, SIDE_COLOURS, edge_side, mix, person_colour, rim_colour
from pose.structures.defaults import DRAWN_SCORE
from pose.structures.face_points import CONTOURS, POINTS
from pose.structures.skeletons import FACE, HANDS, Skeleton
from pose.structures.types import F32, I64, U8, FrameResult, People
from pose.video.planes import Area, Colours
from pose.view import draw
from pose.view.bodies import Bodies, BodyMesh, draw_bodies, extent
from pose.view.corner import Corner
from pose.view.draw import Canvas, Point
from pose.view.hands import HAND_POINTS, skeleton_with_hands, with_hands
from pose.view.head import HeadLocator
from pose.view.inset import Inset
from pose.view.insets import AUTO, OFF

_OPAQUE_SCORE = 0.65  # keypoints with this or a higher score are opaque
_LEVELS = 4  # number of opacity levels
_MIN_LANDSCAPE = 1.2  # width / height; the inset has a panel beside narrower frames
_CORNER_HEIGHT = 0.42  # height of the inset, relative to the shorter side of the frame
_MIN_INSET_PX = 8
_PANEL_WIDTH = 0.6  # width of the panel, relative to the shorter side of the frame
_BADGE_HEIGHT = 0.026  # height of the id's capitals relative to the person
_BADGE_MIN, _BADGE_MAX = 6.0, 14.0  # bounds of this height for unit 1; the lower one also in px
_FACE = ("nose", "eye", "ear", "mouth")
_HAND = ("pinky", "index", "thumb")
# Thickness of joints of face and hand, and of dense points along a face or fingers, relative to a limb.
_FINE, _FINEST = 0.55, 0.25
_DASH = 3.0  # length of the dashes of a doubtful person, in limb widths
_TRACED = frozenset((*FACE, *HANDS, *HAND_POINTS))


class _Group(NamedTuple):
    """Limbs or joints of equal thickness."""

    factor: float  # thickness, relative to an ordinary limb
    rows: I64  # their indices
    by_colour: list[tuple[RGB, I64]]  # colour, and the indices of those that have it


class _Plan:
    """Properties of a skeleton's joints and limbs for drawing."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.edges = np.array(skeleton.edges)  # (E, 2) indices of the joints that each limb connects
        thicknesses = np.array([thickness(name) for name in skeleton.names])
        sides = [skeleton.side(joint) for joint in range(len(skeleton))]
        self.joint_groups = _groups(thicknesses, sides)
        edge_sides = [edge_side(skeleton, a, b) for a, b in skeleton.edges]
        self.limb_groups = _groups(thicknesses[self.edges].max(axis=1), edge_sides)
        self.head = HeadLocator(skeleton)  # estimator of the head's position


class _Badge(NamedTuple):
    """Badge that shows a person's id: middle of its lower edge and height of its capitals in px."""

    words: str  # the text
    place: Point  # middle of its lower edge in px
    height: float  # height of its capitals in px


class Overlay:
    """Renderer of results on the frames of one video, in order."""

    def __init__(
        self,
        size: tuple[int, int],
        skeleton: Skeleton,
        inset: str = AUTO,
        colours: Colours | None = None,
        bodies: Bodies | None = None,
        doubtful: Collection[int] = (),
    ) -> None:
        """Prepare the drawing on frames of one size."""
        self._size, self._bodies, self._doubtful = size, bodies, frozenset(doubtful)
        self._code = colours.code if colours else draw.as_rgb
        self._skeleton = skeleton
        self._body = _Plan(skeleton)
        self._head = self._body.head
        self._last: tuple[FrameResult, People, list[_Badge]] | None = None
        self._unit = _unit(size)
        self._legend = Legend(size, self._unit, self._code)
        width, height = size
        self._has_panel = inset == AUTO and width < _MIN_LANDSCAPE * height
        self._inset: Inset | None = None
        self._corner: Corner | None = None
        # (width, height) px of the result of `draw`; wider than the video if the 3D view is beside the image.
        self.output_size = size
        if self._has_panel:
            panel = max(1, round(_PANEL_WIDTH * min(width, height)))
            self._inset = Inset((panel, height), colours)
            self.output_size = width + panel, height
        elif inset != OFF and (side := round(_CORNER_HEIGHT * min(width, height))) >= _MIN_INSET_PX:
            self._inset = Inset((round(1.1 * side), side), colours)
            self._corner = Corner(size, self._inset.size, self._legend.height, inset)

    def draw(self, image: U8, result: FrameResult) -> U8:
        """Return a new (H, W, 3) uint8 image of `output_size` with the frame and the drawing."""
        width, height = self._size
        if image.shape != (height, width, 3):
            raise ValueError(f"image: expected shape {(height, width, 3)}, got {image.shape}")
        drawn = np.empty((height, self.output_size[0], 3), np.uint8)
        drawn[:, :width] = image
        if self.panel is not None:
            drawn[:, width:] = self.panel
        self.draw_on(drawn, result)
        return drawn

    def draw_on(self, image: U8, result: FrameResult) -> Area:
        """Draw on a frame with a panel to its right, in place; return the panel's drawn, possibly empty area."""
        width = self._size[0]
        image_area = image[:, :width]
        canvas = Canvas(image_area, self._code)
        self._draw_people(canvas, result)
        self._legend.draw(canvas, result.time)
        if self._inset is None:
            return Area(width, 0, width, 0)
        if self._corner is not None:
            self._corner.paste(image_area, self._inset.render(result), result, self._heads(result))
            return Area(width, 0, width, 0)
        top, low = self._inset.render_on(image[:, width:], result)
        return Area(width, top, self.output_size[0], low)

    @cached_property
    def _with_hands(self) -> "_Plan":
        return _Plan(skeleton_with_hands(self._skeleton))

    @property
    def panel(self) -> U8 | None:
        """The panel beside the frame as it is without people, (H, W, 3) uint8; None if there is no panel."""
        return self._inset.background if self._inset is not None and self._has_panel else None

    def changes(self, result: FrameResult) -> list[Area]:
        """Return the areas of the frame that drawing `result` changes. The areas may overlap."""
        height = self._size[1]
        people, badges = self._prepared(result)
        areas = [self._reach(people, row, badge) for row, badge in enumerate(badges)]
        areas += [self._area(extent(mesh)) for mesh in self._meshes(result) if len(mesh.corners)]
        areas.append(Area(0, height - self._legend.height, self._legend.width, height))
        if self._corner is not None:
            areas.append(self._corner.next_area(result, self._heads(result)))
        return [area for area in areas if area.pixels]

    def _heads(self, result: FrameResult) -> F32:
        """Return the boxes (P, 4) px of the visible heads."""
        people, boxes = result.people, []
        for keypoints, scores, person_box in zip(people.keypoints, people.scores, people.boxes, strict=True):
            finite_scores = np.where(np.isfinite(keypoints).all(axis=1), scores, 0)
            if (box := self._head.area(keypoints, finite_scores, person_box)) is not None:
                boxes.append(box)
        return np.array(boxes, np.float32).reshape(-1, 4)

    def _reach(self, people: People, row: int, badge: _Badge) -> Area:
        """Return an area that contains the drawing of a person."""
        drawn = [draw.label_reach(self._size, *badge)]
        keypoints = people.keypoints[row]
        seen = np.isfinite(keypoints).all(axis=1) & (people.scores[row] > DRAWN_SCORE)
        drawn.append(np.clip(keypoints[seen], -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX).astype(np.float64))
        if people.faces is not None and people.faces.scores[row] > 0:
            drawn.append(
                np.clip(people.faces.points[row, :, :2], -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX).astype(
                    np.float64
                )
            )
        return self._area(np.concatenate(drawn), 2 * self._width(people, row) + 2)

    def _area(self, points: NDArray[np.float64], margin: float = 0.0) -> Area:
        """Return the area of the frame that contains points (N, 2) px with a margin in px."""
        low = np.clip(np.floor(points.min(axis=0) - margin), 0, self._size).astype(int).tolist()
        high = np.clip(np.ceil(points.max(axis=0) + margin) + 1, 0, self._size).astype(int).tolist()
        return Area(low[0], low[1], high[0], high[1])

    def _meshes(self, result: FrameResult) -> list[BodyMesh]:
        return [] if self._bodies is None else self._bodies.of(result)

    def _prepared(self, result: FrameResult) -> tuple[People, list[_Badge]]:
        """Return the people, with left and right as used for lifting, and their badges."""
        # `changes` and `draw_on` are called with the same result, which is prepared once.
        if self._last is None or self._last[0] is not result:
            keypoints, scores = with_lifted_sides(result, self._skeleton)
            hands = result.people.hands
            if hands is not None:
                keypoints, scores = with_hands(keypoints, scores, hands, result.poses.swapped[:, 1])
            people = replace(result.people, keypoints=keypoints, scores=scores, keypoint_sigma=np.zeros_like(scores))
            badges = [self._badge(people, row) for row in range(len(people))]
            badges = [
                b._replace(words=f"{b.words}?") if self._is_doubtful(result, i) else b for i, b in enumerate(badges)
            ]
            self._last = result, people, badges
        return self._last[1:]

    def _is_doubtful(self, result: FrameResult, row: int) -> bool:
        marked = result.placed is not None and bool(result.placed.doubtful[row])
        return marked or int(result.people.ids[row]) in self._doubtful

    def _draw_people(self, canvas: Canvas, result: FrameResult) -> None:
        draw_bodies(canvas, self._meshes(result))
        people, badges = self._prepared(result)
        rows = np.argsort(people.boxes[:, 3], kind="stable").tolist()  # a lower person is nearer, and drawn last
        for row in rows:
            self._draw_skeleton(canvas, people, row, dashed=self._is_doubtful(result, row))
        if people.faces is not None:
            for row in np.flatnonzero(people.faces.detected).tolist():
                draw_face(canvas, people.faces.points[row], rim_colour(int(people.ids[row])))
        for row in rows:
            words, place, height = badges[row]
            draw.label(canvas, words, place, height, person_colour(int(people.ids[row])))

    def _badge(self, people: People, row: int) -> _Badge:
        """Return the badge of a person, above the top of the head. Its size depends on that of the person."""
        box = people.boxes[row]
        known = np.isfinite(people.keypoints[row]).all(axis=1)
        crown, upwards = self._head.crown(people.keypoints[row], np.where(known, people.scores[row], 0), box)
        proportional = _BADGE_HEIGHT * float(box[3] - box[1])
        height = max(_BADGE_MIN, min(max(proportional, _BADGE_MIN * self._unit), _BADGE_MAX * self._unit))
        x, y = np.clip(crown + 1.1 * height * upwards, -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX).tolist()
        return _Badge(str(int(people.ids[row])), (x, y + 0.95 * height), height)

    def _width(self, people: People, row: int) -> float:
        """Return the thickness of a person's limbs in px."""
        return max(1.2, min(3.6 * self._unit, 0.016 * float(people.boxes[row, 3] - people.boxes[row, 1])))

    def _draw_skeleton(self, canvas: Canvas, people: People, row: int, dashed: bool) -> None:
        """Draw in layers of equal opacity, faint ones first, so that overlaps within a layer do not accumulate."""
        keypoints, scores = people.keypoints[row], people.scores[row]
        plan = self._body if len(keypoints) == len(self._skeleton) else self._with_hands
        rim = rim_colour(int(people.ids[row]))
        known = np.isfinite(keypoints.sum(axis=1))
        opacity = np.where(known, (scores - DRAWN_SCORE) / (_OPAQUE_SCORE - DRAWN_SCORE), 0)
        face = np.where(plan.head.face, plan.head.opacity(keypoints, np.where(known, scores, 0)), 1)
        levels = np.ceil(np.clip(opacity, 0, 1) * face * _LEVELS).astype(np.int64)
        limb_levels = levels[plan.edges].min(axis=1)
        points = np.clip(np.where(known[:, None], keypoints, 0), -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX)
        width = self._width(people, row)
        for level in range(1, _LEVELS + 1):
            joints, limbs = np.equal(levels, level), np.equal(limb_levels, level)
            if not joints.any():  # a limb has the lower level of its joints, so no limb has this level either
                continue
            area = np.concatenate([points[joints], points[plan.edges[limbs]].reshape(-1, 2)])
            with draw.layer(canvas, area, 2 * width + 2, level / _LEVELS) as (layer, corner):
                self._draw_limbs(layer, plan, points - corner, limbs, width, rim, dashed)
                self._draw_joints(layer, plan, points - corner, joints, width, rim)

    def _draw_limbs(
        self,
        canvas: Canvas,
        plan: "_Plan",
        points: F32,
        chosen: NDArray[np.bool_],
        width: float,
        rim: RGB,
        dashed: bool,
    ) -> None:
        segments = points[plan.edges] if dashed else draw.fixed(points)[plan.edges]

        def lines(rows: I64) -> NDArray[np.number]:
            own = segments[rows[chosen[rows]]]
            return draw.dashes(own, _DASH * width) if dashed else own

        for group in plan.limb_groups:
            thick = group.factor * width + 2 * _rim(width, group.factor)
            draw.strokes(canvas, lines(group.rows), rim, thick)
        for group in plan.limb_groups:
            for colour, rows in group.by_colour:
                draw.strokes(canvas, lines(rows), colour, group.factor * width)

    def _draw_joints(
        self, canvas: Canvas, plan: "_Plan", points: F32, chosen: NDArray[np.bool_], width: float, rim: RGB
    ) -> None:
        for group in plan.joint_groups:
            radius = group.factor * width + 0.6 * _rim(width, group.factor)
            draw.discs(canvas, points[group.rows[chosen[group.rows]]], radius, rim)
        for group in plan.joint_groups:
            for colour, rows in group.by_colour:
                draw.discs(canvas, points[rows[chosen[rows]]], group.factor * width, mix(colour, PAPER, 0.35))


def _groups(thicknesses: NDArray[np.float64], sides: list[str]) -> list[_Group]:
    """Return groups of limbs or joints of equal thickness (N,), the finest first; sides: N, that of each."""
    groups = []
    for factor in (_FINEST, _FINE, 1.0):
        rows = np.flatnonzero(thicknesses == factor)
        by_side = {side: rows[[sides[row] == side for row in rows.tolist()]] for side in SIDE_COLOURS}
        groups.append(_Group(factor, rows, [(SIDE_COLOURS[side], own) for side, own in by_side.items() if len(own)]))
    return [group for group in groups if len(group.rows)]


def _rim(width: float, factor: float) -> float:
    """Return how far the outline extends beyond a limb of `factor * width` px, in px."""
    return max(1.0, 0.3 * width) * min(1.0, factor / _FINE)


def thickness(name: str) -> float:
    """Return the relative thickness with which the joint `name` is drawn: 1, or less in face and hands."""
    if name in _TRACED:
        return _FINEST
    part_of = any(part in _FACE or part in _HAND for part in name.split("_")) and "foot" not in name
    return _FINE if part_of else 1.0


def _unit(size: tuple[int, int]) -> float:
    """Return the scale of strokes and letters for images of `size` (width, height) px; 1 for 1280 x 720."""
    result: float = max(0.45, (size[0] * size[1]) ** 0.5 / 960)
    return result


_WIDTH = 0.008  # width of a line, in heights of the face


def draw_face(canvas: Canvas, points: F32, rim: RGB) -> None:
    """Draw the contours of a face of points (468, 3) px."""
    assert len(points) == POINTS
    pixels = np.clip(points[:, :2], -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX)
    width = max(1.0, _WIDTH * float(np.ptp(pixels[:, 1])))
    lines = [draw.fixed(pixels[list(contour)].astype(np.float64)) for contour in CONTOURS]
    for line in lines:
        draw.strokes(canvas, line[None], rim, 2 * width)
    for line in lines:
        draw.strokes(canvas, line[None], PAPER, width)


_HEIGHT = 10.0  # px, height of the capitals for unit 1
_MIN_HEIGHT = 7.0  # px; smaller text is not legible
_OPACITY = 0.62  # opacity of the background
_WIDEST_TIME = "00:00.00"
SIDES = ("left", "right")


class Legend:
    """Legend in the lower left corner of images of one size; of size 0 if the image is too small."""

    def __init__(self, size: tuple[int, int], unit: float, code: Callable[[RGB], RGB] = draw.as_rgb) -> None:
        """Compute the layout; `unit` is 1 for 1280 x 720, `code` converts an RGB colour to the values of a pixel."""
        letters = max(_MIN_HEIGHT, _HEIGHT * unit)
        gap = round(0.9 * letters)
        words = [draw.text_width(side, letters) for side in SIDES]
        self._swatch = round(1.6 * letters)
        self._starts = [draw.text_width(_WIDEST_TIME, letters) + 2 * gap]  # px, left edges of the colour samples
        for word in words:
            self._starts.append(self._starts[-1] + self._swatch + word + 2 * gap)
        width, height = self._starts[-1], round(2.4 * letters)
        fits = width < size[0] and height < size[1] / 3
        self.width, self.height = (width, height) if fits else (0, 0)
        self._letters, self._gap = letters, gap
        self._ground = np.empty((height, width, 3), np.uint8)
        self._ground[:] = code(INK)

    def draw(self, canvas: Canvas, time: float) -> None:
        """Draw the legend with the time (s) of the frame."""
        if not self.height:
            return
        patch, letters, middle = canvas.pixels[-self.height :, : self.width], self._letters, self.height / 2
        cv2.addWeighted(self._ground, _OPACITY, patch, 1 - _OPACITY, 0, dst=patch)
        line = canvas._replace(pixels=patch)
        draw.text(line, clock(time), (self._gap, middle), letters, PAPER)
        top, low = round(middle - 0.3 * letters), round(middle + 0.3 * letters)
        for side, x in zip(SIDES, self._starts, strict=False):
            patch[top:low, x : x + self._swatch] = canvas.code(SIDE_COLOURS[side])
            draw.text(line, side, (x + self._swatch + 0.7 * self._gap, middle), letters, PAPER)


def clock(time: float) -> str:
    """Format seconds as minutes and seconds, 1:05.20, with hours if there are any."""
    hundredths = round(max(time, 0.0) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else str(minutes)
    return f"{start}:{rest // 100:02d}.{rest % 100:02d}"
