// A second clip in step with the first one: its video and 3D at the same time, or at a moment that the user aligns.

import * as api from "./api.js";
import { Clip } from "./clip.js";
import { Overlay } from "./overlay.js";
import { StudioScene, trails } from "./scene3d.js";

const LATE = 0.15; // s by which the second video may differ while it plays
const GAP = 1e-3;
const element = (id) => document.getElementById(id);

export class Beside {
  // moved(): the user moved the second clip.
  constructor(moved) {
    Object.assign(this, { clip: null, shift: 0, frame: 0 });
    this.video = element("other-video");
    this.overlay = new Overlay(element("other-overlay"), { moved() {}, line() {} });
    this.scene = new StudioScene(element("other-scene"));
    element("other-time").addEventListener("input", ({ target }) => {
      this.shift = this.clip.times[Number(target.value)] - this.time;
      moved();
    });
  }

  async open({ id, name, result }) {
    const project = await api.project(id);
    await api.solve(id, project.edits); // makes the result, if it is not there any more
    const clip = await Clip.open(id, result, () => this.draw());
    await clip.load(0);
    Object.assign(this, { clip, shift: 0, frame: 0 });
    this.video.src = api.video(project, 1);
    this.overlay.open(clip.meta, clip.size);
    element("other-name").textContent = name;
    element("other-time").max = clip.length - 1;
    element("beside").hidden = false;
  }

  close() {
    this.clip = null;
    this.video.pause();
    this.video.removeAttribute("src");
    element("beside").hidden = true;
  }

  // Shows the time of the first clip, which plays at a rate, or 0.
  follow(time, rate) {
    this.time = time;
    if (!this.clip) {
      return;
    }
    const own = Math.min(Math.max(time + this.shift, 0), this.clip.times.at(-1));
    this.frame = this.clip.frameAt(own);
    const wanted = Math.max(0, this.clip.toVideo(this.clip.times[this.frame]) + GAP);
    if (Math.abs(this.video.currentTime - wanted) > (rate ? LATE : GAP / 2)) {
      this.video.currentTime = wanted;
    }
    if (rate && this.video.paused) {
      this.video.playbackRate = rate;
      this.video.play().catch(() => {});
    } else if (!rate) {
      this.video.pause();
    }
    this.draw();
  }

  draw() {
    const { clip, frame } = this;
    const people = clip?.at(frame);
    if (!people) {
      return;
    }
    this.overlay.show(people, [], null);
    this.scene.trails = trails(clip, frame);
    this.scene.cameraHeight = clip.meta.world ? clip.meta.floor : null;
    this.scene.show(people.map(({ id, stage, sigma }) => ({ id, stage, sigma, name: clip.nameOf(id) })), clip.meta.drawing, 1000 * clip.times[frame]);
    element("other-time").value = frame;
    element("other-clock").textContent = `${clip.times[frame].toFixed(2)} s`;
  }
}
