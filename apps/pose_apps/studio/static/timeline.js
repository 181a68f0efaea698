// One row a person: seen, interpolated, doubtful, swapped sides and contacts; and the chart of an angle.

import { BIT } from "./clip.js";

const ROW = 22; // px
const LANES = [["seen", "--seen", 2, 9], ["filled", "--filled", 2, 9], ["doubt", "--doubt", 11, 3], ["legs", "--legs", 14, 2],
  ["arms", "--arms", 16, 2], ["left", "--contact", 18, 1.5], ["right", "--contact", 20, 1.5]];
const SPAN = 5; // s on each side of the cursor

const fitted = (canvas, height) => {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  Object.assign(canvas, { width, height: Math.round(height * ratio) });
  return [canvas.getContext("2d"), width, ratio];
};
const tone = (canvas, name) => getComputedStyle(canvas).getPropertyValue(name).trim();

export class Timeline {
  constructor(canvas, seek) {
    Object.assign(this, { canvas, clip: null, still: document.createElement("canvas") });
    canvas.addEventListener("pointerdown", (event) => {
      const box = canvas.getBoundingClientRect();
      seek(Math.floor(((event.clientX - box.left) / box.width) * this.clip.length));
    });
    new ResizeObserver(() => this.clip && this.open(this.clip)).observe(canvas);
  }

  open(clip) {
    this.clip = clip;
    const height = Math.max(1, clip.people.length) * ROW;
    this.canvas.style.height = `${height}px`;
    const [context, width, ratio] = fitted(this.canvas, height);
    clip.people.forEach(({ bins }, row) => LANES.forEach(([name, colour, top, thick]) => {
      context.fillStyle = tone(this.canvas, colour);
      bins.forEach((bits, bin) => {
        if (bits & BIT[name]) {
          const [from, to] = [bin, bin + 1].map((edge) => (width * edge) / bins.length);
          context.fillRect(from, ratio * (row * ROW + top), Math.max(1, to - from + 0.5), ratio * thick);
        }
      });
    }));
    context.fillStyle = tone(this.canvas, "--text");
    (clip.events ?? []).forEach(({ person, time }) => {
      const row = clip.people.findIndex(({ id }) => id === person);
      context.fillRect((width * (clip.frameAt(time) + 0.5)) / clip.length - ratio / 2, ratio * row * ROW, ratio, ratio * ROW);
    });
    const share = (bins, bit) => Math.round((100 * bins.filter((bits) => bits & bit).length) / Math.max(bins.length, 1));
    this.canvas.setAttribute("aria-label", clip.people.map(({ id, name, bins }) => (
      `${name ?? `Person ${id}`}: seen ${share(bins, BIT.seen)} %, interpolated ${share(bins, BIT.filled)} %, `
      + `doubtful ${share(bins, BIT.doubt)} %`)).join("; ") || "no person");
    Object.assign(this.still, { width: this.canvas.width, height: this.canvas.height });
    this.still.getContext("2d").drawImage(this.canvas, 0, 0);
  }

  draw(frame, [from, until]) {
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const x = (at) => (width * (at + 0.5)) / this.clip.length;
    context.clearRect(0, 0, width, height);
    context.drawImage(this.still, 0, 0);
    if (until !== null) {
      context.fillStyle = "rgb(120 120 120 / 0.25)";
      context.fillRect(x(from), 0, x(until) - x(from), height);
    }
    context.fillStyle = tone(this.canvas, "--text");
    context.fillRect(x(frame) - 1, 0, 2, height);
  }
}

// The angle of both sides, some seconds around the cursor.
export class Chart {
  constructor(canvas, now) {
    Object.assign(this, { canvas, now });
  }

  draw(clip, person, title, frame) {
    const [context, width, ratio] = fitted(this.canvas, this.canvas.clientHeight);
    const { height } = this.canvas;
    const [first, last] = [-SPAN, SPAN].map((side) => clip.frameAt(Math.max(0, clip.times[frame] + side)));
    const series = clip.meta.angles.map((name, column) => ({ name, column }))
      .filter(({ name }) => name.replace(/^(left|right)_/, "") === title);
    const step = Math.max(1, Math.round((last - first) / 200));
    const frames = [];
    for (let at = frame - step * Math.floor((frame - first) / step); at <= last; at += step) {
      frames.push(at);
    }
    const texts = [];
    series.forEach(({ name, column }) => {
      const side = name.split("_")[0];
      context.strokeStyle = tone(this.canvas, { left: "--side-left", right: "--side-right" }[side] ?? "--text");
      context.lineWidth = 1.6 * ratio;
      context.beginPath();
      let pen = false;
      for (const at of frames) {
        const value = clip.at(at)?.find(({ id }) => id === person)?.angle(column, clip.meta.angles.length) ?? NaN;
        const point = [(width * (at - first)) / Math.max(last - first, 1), height * (1 - (value + 30) / 240)];
        pen = Number.isFinite(value) && (pen ? context.lineTo(...point) : context.moveTo(...point), true);
        if (at === frame) {
          const letter = { left: "L ", right: "R " }[side] ?? "";
          texts.push(`${letter}${Number.isFinite(value) ? value.toFixed(0) : "–"}°`);
        }
      }
      context.stroke();
    });
    context.fillStyle = tone(this.canvas, "--text");
    context.fillRect((width * (frame - first)) / Math.max(last - first, 1) - 1, 0, 2, height);
    this.now.textContent = texts.join("  ");
    this.canvas.setAttribute("aria-label", `${title.replaceAll("_", " ")}: ${texts.join(", ")}`);
  }
}
