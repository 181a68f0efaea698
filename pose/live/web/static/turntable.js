// Viewpoint of the 3D view: rotated with mouse, finger or keys. Until then it sways slightly, which shows depth.

const START = { azimuth: (32 * Math.PI) / 180, elevation: (14 * Math.PI) / 180, zoom: 1 };
const LOWEST = -0.05; // rad
const HIGHEST = 1.5;
const LEAST_ZOOM = 0.3;
const MOST_ZOOM = 6;
const SWAY = (14 * Math.PI) / 180;
const SWAY_SECONDS = 14;
const KEY_STEP = (6 * Math.PI) / 180;
const KEY_ZOOM = 1.12;
const DRAG = 0.008; // rad a px
const KEYS = {
  ArrowLeft: [-KEY_STEP, 0, 1],
  ArrowRight: [KEY_STEP, 0, 1],
  ArrowUp: [0, KEY_STEP, 1],
  ArrowDown: [0, -KEY_STEP, 1],
  "+": [0, 0, KEY_ZOOM],
  "=": [0, 0, KEY_ZOOM],
  "-": [0, 0, 1 / KEY_ZOOM],
};

export class Turntable {
  // changed(): the view should be drawn again.
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed;
    this.mirrored = false;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.pointers = new Map();
    this.reset();
    this.listen();
  }

  now() {
    const sways = !this.touched && !this.still.matches;
    const sway = sways ? SWAY * Math.sin((2 * Math.PI * (performance.now() - this.begun)) / (1000 * SWAY_SECONDS)) : 0;
    return { ...this.goal, azimuth: this.goal.azimuth + sway };
  }

  turn(sideways, upwards, zoom) {
    this.touched = true;
    this.goal.azimuth += (this.mirrored ? -1 : 1) * sideways;
    this.goal.elevation = Math.min(HIGHEST, Math.max(LOWEST, this.goal.elevation + upwards));
    this.goal.zoom = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, this.goal.zoom * zoom));
    this.changed();
  }

  reset() {
    this.goal = { ...START };
    this.touched = false;
    this.begun = performance.now();
    this.changed();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.turn(0, 0, Math.exp(-0.0015 * event.deltaY));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Home") {
        this.reset();
      } else if (event.key in KEYS) {
        this.turn(...KEYS[event.key]);
      } else {
        return;
      }
      event.preventDefault();
    });
  }

  // One finger or the mouse rotates, two fingers zoom.
  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) {
      return;
    }
    const now = [event.clientX, event.clientY];
    if (this.pointers.size === 1) {
      this.turn(-DRAG * (now[0] - before[0]), DRAG * (now[1] - before[1]), 1);
    } else {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]);
      this.turn(0, 0, apart(now) / Math.max(apart(before), 1));
    }
    this.pointers.set(event.pointerId, now);
  }
}
