// A report: one time for the video, the 3D scene and the charts of the chosen person.

import { Body, bytes, readMesh } from "./body.js";
import { Marks } from "./marks.js";
import { Scene } from "./scene.js";

const MISSING = -32768;
const JOINTS = 17;
const LINES = [
  { title: "Speed of the pelvis", unit: "m/s", column: 0, scale: 1000, least: 0 },
  { title: "Height of the pelvis", unit: "m", column: 1, scale: 1000 },
  { title: "Confidence of the 2D joints", unit: "", column: 2, scale: 1000, least: 0, most: 1 },
  { title: "Joints without 2D, estimated", unit: "%", column: 3, scale: 10, least: 0, most: 100 },
];
// Limbs, and the titles of charts whose angles their joints determine.
const LIMBS = [["left_leg", /hip|knee/], ["right_leg", /hip|knee/], ["left_arm", /shoulder|elbow/], ["right_arm", /shoulder|elbow/]];
const GAP = 1e-3; // s; maximum difference between video and clock without seeking

const element = (id) => document.getElementById(id);
const read = (id) => JSON.parse(element(id).textContent);

// Decodes concatenated portions of base64.
function shorts(id) {
  const parts = element(id).textContent.split(" ").filter(Boolean).map(bytes);
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => { all.set(part, at); return at + part.length; }, 0);
  return new Int16Array(all.buffer);
}

const HAND = 21; // points

// Data shared by all bodies of the page.
function pageMesh() {
  const facts = read("mesh");
  return facts.triangles ? readMesh(facts) : null;
}

class Person {
  constructor({ id, doubtful, first, count, frames, marks }, angles, mesh) {
    Object.assign(this, { id, doubtful, first, count, frames, marks, width: angles });
    for (const name of ["stage", "sigma", "angles", "deviations", "lines"]) {
      this[name] = shorts(`p${id}-${name}`);
    }
    this.hands = element(`p${id}-hands`) && shorts(`p${id}-hands`);
    if (element(`p${id}-rest`)) {
      this.body = Body.of(mesh, shorts(`p${id}-rest`));
      this.turns = shorts(`p${id}-turns`);
    }
  }

  // Two hands of 21 points on the stage, each null if not detected; empty without hands in the result.
  handsAt(frame) {
    return (this.hands ? [0, 1] : []).map((side) => {
      const start = 3 * HAND * (2 * (frame - this.first) + side);
      return this.hands[start] === MISSING ? null : Array.from({ length: HAND }, (_, point) => (
        [0, 1, 2].map((axis) => this.hands[start + 3 * point + axis] / 1000)));
    });
  }

  // The posed body in a frame with the person; null without a body.
  bodyAt(frame) {
    if (!this.body) {
      return null;
    }
    const moving = this.body.mesh.moving[this.id];
    this.body.poseRow(this.turns.subarray((frame - this.first) * (3 + 3 * moving.length)), moving);
    return this.body;
  }

  // 17 joints on the stage, or null.
  at(frame) {
    const row = frame - this.first;
    if (row < 0 || row >= this.count || this.stage[row * 3 * JOINTS] === MISSING) {
      return null;
    }
    return Array.from({ length: JOINTS }, (_, joint) => {
      const place = 3 * (row * JOINTS + joint);
      return [0, 1, 2].map((axis) => this.stage[place + axis] / 1000);
    });
  }

  // Radius in mm that contains each of the 17 joints with a probability of 68 %.
  deviationsAt(frame) {
    const row = frame - this.first;
    return this.sigma.subarray(row * JOINTS, (row + 1) * JOINTS);
  }

  // Fraction of joints without 2D over all frames.
  unseen() {
    const known = this.lines.filter((number, at) => at % LINES.length === 3 && number !== MISSING);
    return known.reduce((sum, number) => sum + number, 0) / (1000 * Math.max(1, known.length));
  }

  value(array, width, column, frame, scale) {
    const row = frame - this.first;
    const number = row < 0 || row >= this.count ? MISSING : array[row * width + column];
    return number === MISSING ? NaN : number / scale;
  }
}

// Lines over time, with optional bands, and a mark at the current frame.
class Chart {
  // first, last: frames of the visit, which the width spans. doubts: [first, end] s in which the values are doubtful.
  constructor(title, unit, series, { least, most, doubts = [] }, { times, first, last }, seek) {
    Object.assign(this, { title, unit, series, times, doubts, begin: times[first], end: times[last] });
    this.figure = document.createElement("figure");
    this.caption = document.createElement("figcaption");
    this.name = document.createElement("span");
    this.name.textContent = title;
    this.now = document.createElement("span");
    this.caption.append(this.name, this.now);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.figure.append(this.caption, this.canvas);
    this.range = this.extent(least, most);
    this.canvas.setAttribute("aria-label", `${title}: ${this.number(this.range[0])} to ${this.number(this.range[1])}`);
    this.canvas.addEventListener("pointerdown", (event) => {
      const box = this.canvas.getBoundingClientRect();
      seek(this.begin + ((event.clientX - box.left) / box.width) * (this.end - this.begin));
    });
  }

  number(value) {
    return Number.isFinite(value) ? `${value.toFixed(Math.abs(value) < 10 ? 2 : 0)} ${this.unit}`.trim() : "–";
  }

  extent(least, most) {
    let [low, high] = [Infinity, -Infinity];
    this.series.forEach(({ value }) => this.times.forEach((_, frame) => {
      const number = value(frame);
      if (Number.isFinite(number)) {
        low = Math.min(low, number);
        high = Math.max(high, number);
      }
    }));
    if (low > high) {
      [low, high] = [0, 1];
    }
    const room = Math.max(0.05 * (high - low), 1e-3);
    return [least ?? low - room, most ?? high + room];
  }

  // The lines do not change; they are drawn once for each size and then copied.
  prepare() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((px) => Math.max(1, px * ratio));
    this.canvas.width = this.still.width = Math.round(width);
    this.canvas.height = this.still.height = Math.round(height);
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    const context = this.still.getContext("2d");
    const [low, high] = this.range;
    const x = (frame) => this.place(frame, this.still.width);
    const y = (value) => this.still.height * (1 - (value - low) / (high - low));
    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.fillStyle = colour("--quiet");
    context.strokeStyle = colour("--line");
    [high, (low + high) / 2, low].forEach((value, row) => {
      const line = y(value);
      context.beginPath();
      context.moveTo(0, line);
      context.lineTo(this.still.width, line);
      context.stroke();
      context.textBaseline = ["top", "middle", "bottom"][row];
      context.fillText(this.number(value), 2, line);
    });
    context.globalAlpha = 0.18;
    context.fillStyle = colour("--bad");
    this.doubts.forEach(([from, to]) => {
      const [left, right] = [from, to].map((time) => this.at(time, this.still.width));
      context.fillRect(left, 0, Math.max(1, right - left), this.still.height);
    });
    context.globalAlpha = 1;
    this.series.forEach(({ value, band, tone }) => {
      const paint = colour(tone);
      context.lineWidth = 1.6 * ratio;
      context.strokeStyle = paint;
      context.fillStyle = paint;
      this.runs(value).forEach(([first, last]) => {
        if (band) {
          context.globalAlpha = 0.22;
          context.beginPath();
          for (let frame = first; frame <= last; frame += 1) {
            context.lineTo(x(frame), y(value(frame) + band(frame)));
          }
          for (let frame = last; frame >= first; frame -= 1) {
            context.lineTo(x(frame), y(value(frame) - band(frame)));
          }
          context.fill();
          context.globalAlpha = 1;
        }
        context.beginPath();
        for (let frame = first; frame <= last; frame += 1) {
          context.lineTo(x(frame), y(value(frame)));
        }
        context.stroke();
      });
    });
  }

  // [first, last] frames between which the value is known.
  runs(value) {
    const found = [];
    let first = null;
    for (let frame = 0; frame <= this.times.length; frame += 1) {
      const known = frame < this.times.length && Number.isFinite(value(frame));
      if (known && first === null) {
        first = frame;
      } else if (!known && first !== null) {
        found.push([first, frame - 1]);
        first = null;
      }
    }
    return found;
  }

  place(frame, width) {
    return this.at(this.times[frame], width);
  }

  at(time, width) {
    return (width * (time - this.begin)) / Math.max(this.end - this.begin, 1e-9);
  }

  draw(frame) {
    if (!this.still) {
      this.still = document.createElement("canvas");
      this.prepare();
    }
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.still, 0, 0);
    const x = this.place(frame, this.canvas.width);
    context.strokeStyle = getComputedStyle(document.body).getPropertyValue("--text").trim();
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, this.canvas.height);
    context.stroke();
    this.now.textContent = this.series.map(({ value, label }) => `${label}${this.number(value(frame))}`).join("  ");
  }

  refresh(frame) {
    this.still = null;
    this.draw(frame);
  }
}

class Report {
  constructor() {
    this.facts = read("facts");
    this.times = new Float64Array(bytes(this.facts.times).buffer);
    const mesh = pageMesh();
    this.people = this.facts.people.map((person) => new Person(person, this.facts.angles.length, mesh));
    this.scene = new Scene(element("scene"));
    this.video = element("video");
    this.charts = [];
    this.marks = new Marks(element("marks"), element("repairs"), this.times, (time) => this.seek(this.frameAt(time)));
    this.frame = 0;
    this.playing = null; // start time on the page's clock, and in the result
    this.openVideo();
    this.describe();
    this.choosePeople();
    this.listen();
    this.show(0);
  }

  openVideo() {
    const facts = element("video-facts");
    this.offset = 0;
    if (facts === null) {
      element("views").dataset.view = "scene";
      return;
    }
    const { source, offset } = JSON.parse(facts.textContent);
    this.offset = offset;
    this.video.src = source;
    this.video.addEventListener("error", () => {
      element("views").dataset.view = "scene";
      element("message").textContent = `This browser cannot play the video: ${source.slice(0, 80)}`;
      element("message").hidden = false;
    });
  }

  describe() {
    const { times, facts } = this;
    const seconds = times.at(-1) - times[0];
    const people = this.people.length === 1 ? "1 person" : `${this.people.length} people`;
    const leftOut = facts.leftOut ? `${facts.leftOut} with fewer frames are not on this page` : "";
    element("summary").textContent = [
      people, leftOut, `${times.length} frames, ${seconds.toFixed(1)} s`, facts.space, facts.complete ? "" : "the run was interrupted",
    ].filter(Boolean).join(" · ");
    element("settings").textContent = JSON.stringify(facts.run, null, 2);
    element("time").max = times.length - 1;
  }

  choosePeople() {
    element("person").hidden = this.people.length === 0;
    element("people").replaceChildren(...this.people.map((person, place) => {
      const label = document.createElement("label");
      const radio = Object.assign(document.createElement("input"), { type: "radio", name: "person", checked: place === 0 });
      const text = document.createElement("span");
      text.textContent = person.doubtful ? `${person.id}?` : String(person.id);
      radio.addEventListener("change", () => this.choose(person));
      label.append(radio, text);
      return label;
    }));
    if (this.people.length > 0) {
      this.choose(this.people[0]);
    }
  }

  choose(person) {
    const { times, facts } = this;
    this.marks.choose(person);
    const seek = (time) => this.seek(this.frameAt(time));
    const visit = { times, first: person.first, last: person.first + person.count - 1 };
    const doubts = (title) => LIMBS.filter(([, joints]) => joints.test(title))
      .flatMap(([limb]) => person.marks[`inconsistent_${limb}`]?.spans ?? []);
    const angles = new Map();
    facts.angles.forEach((name, column) => {
      const side = name.startsWith("left_") ? "left" : name.startsWith("right_") ? "right" : "middle";
      const title = name.replace(/^(left|right)_/, "").replaceAll("_", " ");
      const get = (array) => (frame) => person.value(array, person.width, column, frame, 10);
      const tone = { left: "--left", right: "--right", middle: "--text" }[side];
      const label = { left: "L ", right: "R ", middle: "" }[side];
      angles.set(title, [...(angles.get(title) ?? []), {
        value: get(person.angles), band: get(person.deviations), tone, label,
      }]);
    });
    this.charts = [...angles].map(([title, series]) => (
      new Chart(title[0].toUpperCase() + title.slice(1), "°", series, { doubts: doubts(title) }, visit, seek)));
    this.charts.push(...LINES.map(({ title, unit, column, scale, least, most }) => new Chart(title, unit, [{
      value: (frame) => person.value(person.lines, 4, column, frame, scale), tone: "--text", label: "",
    }], { least, most }, visit, seek)));
    element("charts").replaceChildren(...this.charts.map((chart) => chart.figure));
    this.charts.forEach((chart) => chart.draw(this.frame));
  }

  // The last frame at or before a time of the result in s.
  frameAt(time) {
    let [low, high] = [0, this.times.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      [low, high] = this.times[middle] <= time + GAP ? [middle, high] : [low, middle - 1];
    }
    return low;
  }

  show(frame) {
    this.frame = frame;
    element("time").value = frame;
    element("clock").textContent = `${this.times[frame].toFixed(2)} s`;
    const people = this.people.map((person) => {
      const stage = person.at(frame);
      const shown = stage !== null;
      return {
        id: person.id, stage, sigma: person.deviationsAt(frame), hands: shown ? person.handsAt(frame) : [],
        body: shown && element("bodies").checked ? person.bodyAt(frame) : null,
      };
    });
    this.scene.show(people, this.facts.drawing, 1000 * this.times[frame]);
    this.charts.forEach((chart) => chart.draw(frame));
  }

  seek(frame) {
    this.show(Math.min(this.times.length - 1, Math.max(0, frame)));
    if (this.video.src) {
      this.video.currentTime = Math.max(0, this.times[this.frame] - this.offset + GAP);
    }
    if (this.playing !== null) {
      this.playing = { clock: performance.now(), second: this.times[this.frame] };
    }
  }

  toggle() {
    if (this.playing !== null) {
      this.playing = null;
      this.video.pause();
    } else {
      if (this.frame === this.times.length - 1) {
        this.seek(0);
      }
      this.playing = { clock: performance.now(), second: this.times[this.frame] };
      this.video.playbackRate = this.speed;
      this.video.play().catch(() => {}); // without a video the clock alone runs
      requestAnimationFrame(() => this.tick());
    }
    element("play").textContent = this.playing ? "Pause" : "Play";
  }

  get speed() {
    return Number(element("speed").value);
  }

  tick() {
    if (this.playing === null) {
      return;
    }
    const clock = this.playing.second + (this.speed * (performance.now() - this.playing.clock)) / 1000;
    const running = this.video.src && this.video.readyState > 1 && !this.video.paused && !this.video.ended;
    const time = running ? this.video.currentTime + this.offset : clock;
    this.show(this.frameAt(time));
    if (time >= this.times.at(-1)) {
      this.toggle();
    } else {
      requestAnimationFrame(() => this.tick());
    }
  }

  step(seconds) {
    this.seek(this.frameAt(this.times[this.frame] + seconds));
  }

  listen() {
    element("play").addEventListener("click", () => this.toggle());
    element("bodies").addEventListener("change", () => this.show(this.frame));
    element("time").addEventListener("input", (event) => this.seek(Number(event.target.value)));
    element("speed").addEventListener("change", () => {
      this.video.playbackRate = this.speed;
      this.seek(this.frame);
    });
    const keys = {
      " ": () => this.toggle(), ",": () => this.seek(this.frame - 1), ".": () => this.seek(this.frame + 1),
      "[": () => this.step(-1), "]": () => this.step(1),
    };
    document.addEventListener("keydown", (event) => {
      const own = event.target.closest("select, summary") || (event.key === " " && event.target.closest("button, label"));
      if (!own && event.key in keys && !event.ctrlKey && !event.metaKey && !event.altKey) {
        keys[event.key]();
        event.preventDefault();
      }
    });
    const refresh = () => {
      this.marks.draw();
      this.charts.forEach((chart) => chart.refresh(this.frame));
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
    new ResizeObserver(refresh).observe(element("charts"));
  }
}

export function start() {
  window.report = new Report();
}
