// Position of a head in the image, and whether it is seen from behind; as pose/view/head.py.

const HEAD = ["nose", "eye", "ear", "mouth", "head"];
const LOOKING = ["nose", "eye", "mouth", "face"];
const SEEN_FROM = 0.12;
const AWAY = 0.3; // neck lengths; ears swapped by more show the back of the head
const BACK_OF_HEAD = 0.2; // relative opacity of face joints seen from behind
const TO_CROWN = 0.75; // neck lengths from the middle of the head's joints to its top
const USUAL_NECK = 0.13; // of the box's height

const seen = ([x, y, score]) => x !== null && y !== null && score > SEEN_FROM;
const middle = (points) => [0, 1].map((axis) => points.reduce((sum, point) => sum + point[axis], 0) / points.length);
const has = (name, parts) => name.split(/[_-]/).some((part) => parts.includes(part));

export function isFace(name) {
  return has(name, LOOKING);
}

function pair(points, joints, name) {
  const both = ["left", "right"].map((side) => joints.findIndex((joint) => joint.name === `${side}_${name}`));
  return both.every((joint) => joint >= 0 && seen(points[joint])) ? both.map((joint) => points[joint]) : null;
}

// The top of the head [x, y], and the direction from the neck through it.
export function crown({ keypoints, box: [left, top, right, bottom] }, joints) {
  const head = keypoints.filter((point, joint) => has(joints[joint].name, HEAD) && seen(point));
  if (head.length === 0) {
    return { place: [(left + right) / 2, top], away: [0, -1] };
  }
  const centre = middle(head);
  const usual = USUAL_NECK * (bottom - top);
  const shoulders = pair(keypoints, joints, "shoulder");
  const base = shoulders === null ? centre : middle(shoulders);
  const neck = [centre[0] - base[0], centre[1] - base[1]];
  const length = Math.hypot(...neck);
  if (shoulders === null || length < 0.3 * usual) {
    return { place: [centre[0], centre[1] - TO_CROWN * usual], away: [0, -1] };
  }
  return { place: centre.map((value, axis) => value + TO_CROWN * neck[axis]), away: neck.map((value) => value / length) };
}

// Opacity of the face: it decreases as the head turns away. Seen from behind, the left ear is left of the line of the neck.
export function faceOpacity(keypoints, joints) {
  const [ears, shoulders] = ["ear", "shoulder"].map((name) => pair(keypoints, joints, name));
  if (ears === null || shoulders === null) {
    return 1;
  }
  const [centre, base] = [middle(ears), middle(shoulders)];
  const neck = [centre[0] - base[0], centre[1] - base[1]];
  const across = [ears[0][0] - ears[1][0], ears[0][1] - ears[1][1]];
  const square = neck[0] ** 2 + neck[1] ** 2;
  const swapped = square === 0 ? 0 : (across[0] * neck[1] - across[1] * neck[0]) / square;
  return Math.min(1, Math.max(BACK_OF_HEAD, 1 - swapped / AWAY));
}
