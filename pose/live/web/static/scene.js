// The people in 3D on a plain canvas, limbs as round strokes, the far ones first. Coordinates are the server's stage: x right, y away, z up, metres, floor at z = 0.

import { drawBodies } from "./body.js";
import { ink, mixed, parsed, personColour, pill, rimColour } from "./paint.js";
import { Turntable } from "./turntable.js";

const HALF_FOV = (17 * Math.PI) / 180;
const FOLLOW_SECONDS = 0.7;
const LIMB = 0.075; // m
const HEAD = 0.1;
const FINGER = 0.012;
// [parent, child] of the bones of a hand: five chains of four bones from the wrist.
const FINGERS = Array.from({ length: 20 }, (_, bone) => [bone % 4 === 0 ? 0 : bone, bone + 1]);
const RING = 0.34;
const PALEST = 0.55;
const NEAR = 0.15; // m, near clipping plane
const WIDEST_SPOT = 0.5; // m
const SPOT = 0.55; // opacity in its middle, half of it at sigma
const SPOT_REACH = 2.6; // sigma
const SPOT_STEPS = 8;
const NAMES = ["top", "bottom", "floor", "grid", "shadow", "centre"];

export class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.people = [];
    this.hello = null;
    this.view = new Turntable(canvas, () => this.plan());
    this.middle = [0, 3, 0.95];
    this.radius = 1.4;
    this.time = null;
    this.planned = false;
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readColours());
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(
      NAMES.map((name) => [name, parsed(style.getPropertyValue(`--scene-${name}`).trim())]),
    );
    this.plan();
  }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.draw();
  }

  // people: with `stage` joints if their 3D is known; some with points of `hands`, each null if not detected, and
  // with a posed `body`, which is drawn instead of limbs. now: ms.
  show(people, hello, now) {
    this.people = people.filter((person) => person.stage !== null);
    this.hello = hello;
    this.side = [];
    hello?.edges3d.forEach(({ ends: [, joint], side }) => { this.side[joint] = side; });
    this.side[0] = "centre";
    this.follow(now);
    this.draw();
  }

  // Moves smoothly to a view that shows all people.
  follow(now) {
    const elapsed = this.time === null ? Infinity : Math.max(0, now - this.time) / 1000;
    if (this.people.length === 0) {
      return;
    }
    this.time = now;
    const share = 1 - Math.exp(-elapsed / FOLLOW_SECONDS);
    const low = [Infinity, Infinity];
    const high = [-Infinity, -Infinity];
    this.people.forEach(({ stage: [pelvis] }) => [0, 1].forEach((axis) => {
      low[axis] = Math.min(low[axis], pelvis[axis]);
      high[axis] = Math.max(high[axis], pelvis[axis]);
    }));
    const goal = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, 0.95];
    this.middle = this.middle.map((value, axis) => value + share * (goal[axis] - value));
    const reach = 1.08 + Math.hypot(high[0] - low[0], high[1] - low[1]) / 2;
    this.radius += share * (reach - this.radius);
  }

  // The camera of this moment: axes right, up, forward, the eye, and px a metre at a distance of 1 m.
  camera() {
    const { azimuth, elevation, zoom } = this.view.now();
    const [sin, cos] = [Math.sin(azimuth), Math.cos(azimuth)];
    const [rise, level] = [Math.sin(elevation), Math.cos(elevation)];
    const forward = [-sin * level, cos * level, -rise];
    const distance = this.radius / Math.sin(HALF_FOV) / zoom;
    return {
      right: [cos, sin, 0],
      up: [-sin * rise, cos * rise, level],
      forward,
      distance,
      eye: this.middle.map((value, axis) => value - distance * forward[axis]),
      focal: Math.min(this.canvas.width, this.canvas.height) / 2 / Math.tan(HALF_FOV),
    };
  }

  // [x, y, px a metre] of a point; null behind the camera.
  project(camera, point) {
    const [x0, y0, z0] = [point[0] - camera.eye[0], point[1] - camera.eye[1], point[2] - camera.eye[2]];
    const along = (axis) => x0 * axis[0] + y0 * axis[1] + z0 * axis[2];
    const depth = along(camera.forward);
    if (depth < NEAR) {
      return null;
    }
    const scale = camera.focal / depth;
    const x = (this.view.mirrored ? -1 : 1) * scale * along(camera.right);
    return [this.canvas.width / 2 + x, this.canvas.height / 2 - scale * along(camera.up), scale];
  }

  plan() {
    if (!this.planned) {
      this.planned = true;
      requestAnimationFrame(() => {
        this.planned = false;
        this.draw();
      });
    }
  }

  draw() {
    const { canvas, context, colours } = this;
    const shade = context.createLinearGradient(0, 0, 0, canvas.height);
    shade.addColorStop(0, ink(colours.top));
    shade.addColorStop(1, ink(colours.bottom));
    context.fillStyle = shade;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.lineCap = "round";
    const camera = this.camera();
    this.drawFloor(camera);
    if (this.hello !== null) {
      this.people.forEach((person) => this.drawMark(camera, person));
      this.people.forEach((person) => this.drawHaze(camera, person));
      const bodies = this.people.filter(({ body }) => body);
      drawBodies(this.context, bodies, (point) => this.project(camera, point), this.hello.colours, this.view.mirrored);
      this.drawLimbs(camera);
      this.people.forEach((person) => this.drawName(camera, person));
    }
  }

  drawFloor(camera) {
    const [x0, y0] = this.middle;
    const reach = 1.5 * this.radius + 1;
    const circle = Array.from({ length: 64 }, (_, step) => {
      const turn = (2 * Math.PI * step) / 64;
      return [x0 + reach * Math.cos(turn), y0 + reach * Math.sin(turn), 0];
    });
    this.trace(camera, circle, true);
    this.context.fillStyle = ink(this.colours.floor);
    this.context.fill();
    this.context.strokeStyle = ink(mixed(this.colours.grid, this.colours.floor, 0.45));
    this.context.lineWidth = Math.max(1, this.canvas.height / 500);
    for (const axis of [0, 1]) {
      const centre = this.middle[axis];
      for (let line = Math.ceil(centre - reach); line <= centre + reach; line += 1) {
        const half = Math.sqrt(Math.max(reach ** 2 - (line - centre) ** 2, 0));
        const ends = [-half, half].map((way) => (axis === 0 ? [line, y0 + way, 0] : [x0 + way, line, 0]));
        this.trace(camera, ends);
        this.context.stroke();
      }
    }
  }

  // A path through points; the part behind the camera is omitted.
  trace(camera, points, closed = false) {
    this.context.beginPath();
    points.forEach((point) => {
      const place = this.project(camera, point);
      if (place !== null) {
        this.context.lineTo(place[0], place[1]);
      }
    });
    if (closed) {
      this.context.closePath();
    }
  }

  // The shadow of a light above, and a ring in the person's colour.
  drawMark(camera, { id, stage }) {
    const { context } = this;
    const below = this.project(camera, [stage[0][0], stage[0][1], 0]);
    if (below === null) {
      return;
    }
    context.strokeStyle = ink(this.colours.shadow);
    context.lineWidth = 1.2 * LIMB * below[2];
    this.hello.edges3d.forEach(({ ends }) => {
      this.trace(camera, ends.map((joint) => [stage[joint][0], stage[joint][1], 0]));
      context.stroke();
    });
    const ring = Array.from({ length: 40 }, (_, step) => {
      const turn = (2 * Math.PI * step) / 40;
      return [stage[0][0] + RING * Math.cos(turn), stage[0][1] + RING * Math.sin(turn), 0];
    });
    this.trace(camera, ring, true);
    context.strokeStyle = ink(personColour(this.hello.colours, id));
    context.lineWidth = Math.max(2, 0.02 * below[2]);
    context.stroke();
  }

  // A soft spot around each joint whose sigma (68 % radius) exceeds the limb.
  drawHaze(camera, { stage, sigma }) {
    const { context } = this;
    (sigma ?? []).forEach((millimetres, joint) => {
      const reach = (SPOT_REACH * Math.min(millimetres ?? 0, 1000 * WIDEST_SPOT)) / 1000;
      const place = reach > (SPOT_REACH * LIMB) / 2 ? this.project(camera, stage[joint]) : null;
      if (place === null) {
        return;
      }
      const [x, y, scale] = place;
      const side = this.side[joint];
      const [red, green, blue] = side === "centre" ? this.colours.centre : this.hello.colours[side];
      const shade = context.createRadialGradient(x, y, 0, x, y, reach * scale);
      for (let step = 0; step <= SPOT_STEPS; step += 1) {
        const share = step / SPOT_STEPS;
        const opacity = step === SPOT_STEPS ? 0 : SPOT * 2 ** -((share * SPOT_REACH) ** 2);
        shade.addColorStop(share, `rgb(${red} ${green} ${blue} / ${opacity})`);
      }
      context.fillStyle = shade;
      context.fillRect(x - reach * scale, y - reach * scale, 2 * reach * scale, 2 * reach * scale);
    });
  }

  drawLimbs(camera) {
    const { context, colours } = this;
    const sticks = this.people.filter(({ body }) => !body);
    const limbs = sticks.flatMap(({ id, stage, hands = [] }) => {
      const rimmed = rimColour(this.hello.colours, id);
      const face = mixed(personColour(this.hello.colours, id), [250, 250, 250], 0.25);
      const places = stage.map((joint) => this.project(camera, joint));
      const fingers = hands.flatMap((hand, at) => this.fingers(camera, hand, ["left", "right"][at], rimmed));
      return fingers.concat(this.hello.edges3d
        .filter(({ ends: [a, b] }) => places[a] !== null && places[b] !== null)
        .map(({ ends: [a, b], side, head }) => ({
          a: places[a], b: places[b], side, head, rimmed, face, thick: LIMB, scale: (places[a][2] + places[b][2]) / 2,
        })));
    });
    limbs.sort((one, other) => one.scale - other.scale);
    const nearest = limbs.length ? limbs[limbs.length - 1].scale : 1;
    limbs.forEach(({ a, b, side, head, rimmed, face, thick, scale }) => {
      const own = side === "centre" ? colours.centre : this.hello.colours[side];
      const pale = PALEST * Math.min(1, Math.max(0, nearest / scale - 1) / 0.35);
      const width = thick * scale;
      const rim = Math.max(thick === LIMB ? 2 : 1, 0.35 * width);
      [[rimmed, rim], [own, 0]].forEach(([colour, more]) => {
        const paint = ink(mixed(colour, colours.bottom, pale));
        context.strokeStyle = paint;
        context.fillStyle = paint;
        context.lineWidth = width + more;
        context.beginPath();
        context.moveTo(a[0], a[1]);
        context.lineTo(b[0], b[1]);
        context.stroke();
        if (head) {
          context.fillStyle = more === 0 ? ink(mixed(face, colours.bottom, pale)) : paint;
          context.beginPath();
          context.arc(b[0], b[1], HEAD * scale + more / 2, 0, 2 * Math.PI);
          context.fill();
        }
      });
    });
  }

  // The bones of a hand, as limbs.
  fingers(camera, hand, side, rimmed) {
    const places = (hand ?? []).map((point) => this.project(camera, point));
    return FINGERS.filter(([a, b]) => places[a] && places[b]).map(([a, b]) => ({
      a: places[a], b: places[b], side, head: false, rimmed, thick: FINGER, scale: (places[a][2] + places[b][2]) / 2,
    }));
  }

  drawName(camera, { id, stage, name }) {
    const head = stage[this.hello.head];
    const place = this.project(camera, [head[0], head[1], head[2] + 0.28]);
    if (place !== null) {
      const size = Math.max(13, 0.032 * Math.min(this.canvas.width, this.canvas.height));
      pill(this.context, name ?? String(id), place[0], Math.max(place[1], 0.75 * size), size, personColour(this.hello.colours, id));
    }
  }
}
