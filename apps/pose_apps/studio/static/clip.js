// The frames of a result. They are fetched in portions, of which a few are kept, so memory does not grow with the clip.

import { bytes } from "./body.js";
import * as api from "./api.js";

export const MISSING = -32768;
const JOINTS = 17;
const PORTION = 300; // frames
const KEPT = 8; // portions
export const BIT = { seen: 1, filled: 2, doubt: 4, legs: 8, arms: 16, left: 32, right: 64 };

const shorts = (text) => new Int16Array(bytes(text).buffer);

class Row {
  constructor(data, at, parts) {
    Object.assign(this, { id: data.id, data, at, parts });
  }

  row(name, width) {
    return this.data[name].subarray(this.at * width, (this.at + 1) * width);
  }

  // 17 joints in m, or null.
  get stage() {
    const row = this.row("stage", 3 * JOINTS);
    if (row[0] === MISSING) {
      return null;
    }
    return Array.from({ length: JOINTS }, (_, joint) => [0, 1, 2].map((axis) => row[3 * joint + axis] / 1000));
  }

  // The pelvis alone, in m, or null.
  get pelvis() {
    const row = this.row("stage", 3 * JOINTS);
    return row[0] === MISSING ? null : [row[0] / 1000, row[1] / 1000];
  }

  get sigma() {
    return this.row("sigma", JOINTS);
  }

  // [x, y] px of each 2D joint, null if not seen.
  get points() {
    const row = this.row("points", this.data.points.length / this.data.count);
    return Array.from({ length: row.length / 2 }, (_, joint) => (
      row[2 * joint] === MISSING ? null : [row[2 * joint] / this.parts, row[2 * joint + 1] / this.parts]));
  }

  get centre() {
    const [x, y] = this.row("centre", 2);
    return x === MISSING ? null : [x / this.parts, y / this.parts];
  }

  angle(column, width) {
    const value = this.data.angles[this.at * width + column];
    return value === MISSING ? NaN : value / 10;
  }
}

export class Clip {
  // loaded(): frames arrived.
  constructor(id, name, meta, loaded) {
    Object.assign(this, { id, name, meta, loaded });
    this.times = new Float64Array(bytes(meta.times).buffer);
    this.people = meta.people.map((person) => ({ ...person, bins: bytes(person.bins) }));
    this.camera = 1;
    this.portions = new Map(); // in order of use
    this.asked = new Map();
  }

  static async open(id, name, loaded) {
    return new Clip(id, name, await api.result(id, name), loaded);
  }

  get length() {
    return this.times.length;
  }

  // Shows the 2D of another camera of the moment, from 1 on.
  show(camera) {
    Object.assign(this, { camera, portions: new Map(), asked: new Map() });
  }

  get size() {
    return this.meta.cameras[this.camera - 1]?.size ?? this.meta.size;
  }

  // Times of the result and of the camera's video, s.
  toVideo(time) {
    const { offset, drift } = this.meta.cameras[this.camera - 1] ?? { offset: 0, drift: 0 };
    return (time - offset) / (1 + drift);
  }

  fromVideo(time) {
    const { offset, drift } = this.meta.cameras[this.camera - 1] ?? { offset: 0, drift: 0 };
    return time * (1 + drift) + offset;
  }

  frameAt(time) {
    let [low, high] = [0, this.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      [low, high] = this.times[middle] <= time + 1e-3 ? [middle, high] : [low, middle - 1];
    }
    return low;
  }

  async load(frame) {
    const number = Math.floor(frame / PORTION);
    if (this.portions.has(number) || frame < 0 || frame >= this.length) {
      return;
    }
    if (!this.asked.has(number)) {
      this.asked.set(number, api.frames(this.id, this.name, number * PORTION, PORTION, this.camera).then((portion) => {
        portion.people.forEach((person) => {
          ["stage", "sigma", "points", "centre", "angles", "contacts"].forEach((name) => {
            person[name] = shorts(person[name]);
          });
          person.count = portion.count;
        });
        this.portions.set(number, portion);
        while (this.portions.size > KEPT) {
          this.portions.delete(this.portions.keys().next().value);
        }
        this.loaded();
      }).finally(() => this.asked.delete(number)));
    }
    await this.asked.get(number);
  }

  // The people of a frame; null if it has not arrived.
  at(frame) {
    const number = Math.floor(frame / PORTION);
    const portion = this.portions.get(number);
    if (!portion) {
      this.load(frame).catch(() => {});
      return null;
    }
    this.portions.delete(number);
    this.portions.set(number, portion);
    if (frame - portion.first > PORTION / 2) {
      this.load(frame + PORTION).catch(() => {});
    }
    return portion.people.map((person) => new Row(person, frame - portion.first, this.meta.parts));
  }

  nameOf(person) {
    return this.people.find(({ id }) => id === person)?.name;
  }

  // The place of a person in a frame, in the words of an edit; null if the person is not seen there.
  placeAt(frame, person) {
    const centre = this.at(frame)?.find(({ id }) => id === person)?.centre;
    return centre ? { time: this.ownTime(frame), x: centre[0], y: centre[1], ...this.named } : null;
  }

  // The number of the camera's video.
  get number() {
    return this.meta.cameras[this.camera - 1]?.number ?? 1;
  }

  // The camera as a member of a place.
  get named() {
    return this.number > 1 ? { camera: this.number } : {};
  }

  // The time of a frame in the video of the camera, s.
  ownTime(frame) {
    return Math.max(0, this.toVideo(this.times[frame]));
  }

  // The place of a person: in this frame, or in the nearest one in which the person is seen; null if there is none.
  async place(person, frame) {
    const { bins } = this.people.find(({ id }) => id === person);
    const near = [...bins.keys()].filter((bin) => bins[bin] & BIT.seen)
      .map((bin) => Math.ceil((bin * this.length) / bins.length))
      .sort((a, b) => Math.abs(a - frame) - Math.abs(b - frame)).slice(0, 40);
    for (const at of [frame, ...near]) {
      await this.load(at);
      const place = this.placeAt(at, person);
      if (place) {
        return place;
      }
    }
    return null;
  }
}
