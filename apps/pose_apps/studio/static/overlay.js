// The 2D joints on the video, and what is drawn or dragged there.

import { ink, personColour, pill } from "./paint.js";

const REACH = 14; // px of the page within which a joint is taken
const SIDES = { left: "left", right: "right" };

export class Overlay {
  // moved(person, joint, [x, y]) and line([x, y], [x, y]): in px of the image.
  constructor(canvas, { moved, line }) {
    Object.assign(this, { canvas, moved, line, people: [], ghosts: [], drag: null, drawsLine: false, chosen: null });
    this.context = canvas.getContext("2d");
    canvas.addEventListener("pointerdown", (event) => this.take(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointercancel", () => this.clear());
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  open(meta, size = meta.size) {
    Object.assign(this, { meta, size, drag: null });
    this.side = meta.skeleton.names.map((name) => SIDES[name.split("_").find((part) => part in SIDES)] ?? "centre");
  }

  // chosen: the person and joint that arrow keys move. ghosts: the people before the correction.
  show(people, ghosts, chosen) {
    Object.assign(this, { people, ghosts, chosen });
    this.draw();
  }

  get fit() {
    const [width, height] = this.size;
    const scale = Math.min(this.canvas.clientWidth / width, this.canvas.clientHeight / height);
    return { scale, left: (this.canvas.clientWidth - scale * width) / 2, top: (this.canvas.clientHeight - scale * height) / 2 };
  }

  toImage({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    const { scale, left, top } = this.fit;
    return [(clientX - box.left - left) / scale, (clientY - box.top - top) / scale];
  }

  take(event) {
    const at = this.toImage(event);
    this.canvas.setPointerCapture(event.pointerId);
    if (this.drawsLine) {
      this.drag = { from: at, to: at };
      return;
    }
    let best = REACH / this.fit.scale;
    this.people.forEach(({ id, points }) => points.forEach((point, joint) => {
      const away = point === null ? Infinity : Math.hypot(point[0] - at[0], point[1] - at[1]);
      if (away < best && this.meta.movable.includes(this.meta.skeleton.names[joint])) {
        best = away;
        this.drag = { person: id, joint, to: at };
      }
    }));
    this.draw();
  }

  move(event) {
    if (this.drag !== null) {
      this.drag.to = this.toImage(event);
      this.draw();
    }
  }

  drop() {
    const { drag } = this;
    this.drag = null;
    if (drag?.from) {
      this.line(drag.from, drag.to);
    } else if (drag) {
      this.moved(drag.person, drag.joint, drag.to);
    }
  }

  clear() {
    this.drag = null;
    this.draw();
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const point = this.chosen && this.people.find(({ id }) => id === this.chosen.person)?.points[this.chosen.joint];
    if (event.key in steps && point) {
      const step = event.shiftKey ? 10 : 1;
      const from = this.drag?.joint === this.chosen.joint ? this.drag.to : point;
      this.drag = { ...this.chosen, to: from.map((value, axis) => value + step * steps[event.key][axis]) };
      this.draw();
    } else if (event.key === "Enter" && this.drag) {
      this.drop();
    } else if (event.key === "Escape" && this.drag) {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  draw() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    Object.assign(this.canvas, {
      width: Math.max(1, Math.round(this.canvas.clientWidth * ratio)),
      height: Math.max(1, Math.round(this.canvas.clientHeight * ratio)),
    });
    if (!this.meta) {
      return;
    }
    const { scale, left, top } = this.fit;
    this.context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
    this.paint(this.context, scale);
    this.context.setTransform(1, 0, 0, 1, 0, 0);
  }

  // Draws in px of the image; scale: px of the page for each.
  paint(context, scale) {
    const { colours } = this.meta.drawing;
    const width = 3 / scale;
    this.ghosts.forEach(({ points }) => this.limbs(context, points, width / 2, () => "rgb(150 150 150 / 0.8)"));
    this.people.forEach(({ id, points, centre }) => {
      const moved = this.drag?.person === id ? points.with(this.drag.joint, this.drag.to) : points;
      this.limbs(context, moved, width, (side) => ink(side === "centre" ? personColour(colours, id) : colours[side]));
      moved.forEach((point, joint) => {
        if (point !== null) {
          const chosen = this.chosen?.person === id && this.chosen.joint === joint;
          context.fillStyle = chosen ? "#ffffff" : ink(personColour(colours, id));
          context.beginPath();
          context.arc(point[0], point[1], (chosen ? 2 : 1.2) * width, 0, 2 * Math.PI);
          context.fill();
        }
      });
      const tops = moved.filter((point) => point !== null);
      if (centre && tops.length) {
        const high = Math.min(...tops.map((point) => point[1]));
        const name = this.meta.people.find((person) => person.id === id)?.name ?? String(id);
        pill(context, name, centre[0], high - 20 / scale, 14 / scale, personColour(colours, id));
      }
    });
    if (this.drag?.from) {
      context.strokeStyle = "#ffd400";
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(...this.drag.from);
      context.lineTo(...this.drag.to);
      context.stroke();
    }
  }

  limbs(context, points, width, colour) {
    context.lineWidth = width;
    context.lineCap = "round";
    this.meta.skeleton.edges.forEach(([a, b]) => {
      if (points[a] && points[b]) {
        context.strokeStyle = colour(this.side[a] === this.side[b] ? this.side[a] : "centre");
        context.beginPath();
        context.moveTo(...points[a]);
        context.lineTo(...points[b]);
        context.stroke();
      }
    });
  }
}
