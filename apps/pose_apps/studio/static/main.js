// The page: clips, and one clip with its corrections.

import * as api from "./api.js";
import { Beside } from "./beside.js";
import { Clip } from "./clip.js";
import { Overlay } from "./overlay.js";
import { Queue } from "./queue.js";
import { StudioScene, trails } from "./scene3d.js";
import { readEdits, savePicture, showFormats, showLinks } from "./takeaway.js";
import { Chart, Timeline } from "./timeline.js";
import { TOOLS, stateOf } from "./tools.js";

const element = (id) => document.getElementById(id);
const GAP = 1e-3; // s after the start of a frame to which the video is sought

class Studio {
  constructor() {
    Object.assign(this, {
      project: null, clip: null, before: null, draft: [], frame: 0, person: null, range: [null, null], playing: false, solving: 0,
    });
    this.video = element("video");
    this.scene = new StudioScene(element("scene"));
    this.overlay = new Overlay(element("overlay"), {
      moved: (person, joint, point) => this.moveJoint(person, joint, point),
      line: (from, to) => this.gravity(from, to),
    });
    this.timeline = new Timeline(element("timeline"), (frame) => this.seek(frame));
    this.beside = new Beside(() => this.draw());
    this.chart = new Chart(element("chart"), element("angle-now"));
    this.queue = new Queue({
      open: (project) => this.open(project), changed: (projects) => this.changed(projects), failed: (error) => this.fail(error),
    });
    this.listen();
  }

  async start() {
    try {
      await api.signIn();
      this.about = await api.about();
    } catch (error) {
      this.fail(error.status === 403 ? new Error("Open the address that pose-studio printed; it holds the key.") : error);
      return;
    }
    this.queue.start(this.about);
    showLinks(this.about);
    this.wanted = new URLSearchParams(location.hash.slice(1)).get("project");
  }

  fail(error, kind = "error") {
    element("message").textContent = error.message;
    element("message").dataset.kind = kind;
    element("message").hidden = false;
  }

  done() {
    element("message").hidden = true;
  }

  // Shows a project that is ready.
  async open(project) {
    if (project.state !== "done") {
      return;
    }
    this.done();
    history.replaceState(null, "", `#project=${project.id}`);
    Object.assign(this, { project, draft: [], before: null, range: [null, null], clip: null, frame: 0, person: null });
    element("queue").hidden = true;
    element("studio").hidden = element("back").hidden = false;
    element("title").textContent = project.name;
    element("views").dataset.view = "both";
    this.video.src = api.video(project, 1);
    element("camera-note").hidden = project.cameras === 1;
    await this.show(project.edits);
    if (project.problem) {
      this.fail(new Error(project.problem), "note");
    }
    element("take").open = false;
    this.describe();
  }

  close() {
    history.replaceState(null, "", "#");
    this.pause();
    this.beside.close();
    this.video.removeAttribute("src");
    this.video.load();
    Object.assign(this, { project: null, clip: null });
    element("queue").hidden = false;
    element("studio").hidden = element("back").hidden = true;
    element("title").textContent = "";
    this.queue.poll();
  }

  // Another tab may have changed the edits.
  changed(projects) {
    const first = projects.find(({ id, state }) => id === this.wanted && state === "done");
    if (first) { // the address asks for it
      this.wanted = null;
      this.open(first).catch((error) => this.fail(error));
    }
    const now = this.project && projects.find(({ id }) => id === this.project.id);
    if (now) {
      this.project.progress = now.progress;
    }
    if (now && this.clip && !this.playing && now.previews.length > this.project.previews.length) {
      this.project.previews = now.previews;
      this.video.src = api.video(now, this.clip.number); // its copy is ready
      if (this.unplayable) {
        this.unplayable = false;
        this.done();
      }
      this.seek(this.frame);
    }
    if (now && now.revision !== this.project.revision && this.draft.length === 0 && now.state === "done") {
      this.project = now;
      this.show(now.edits).catch((error) => this.fail(error));
    }
    this.describe();
  }

  // Computes the result of edits, and shows it.
  async show(edits) {
    const turn = (this.solving += 1);
    element("studio").setAttribute("aria-busy", "true");
    element("keep").disabled = true;
    try {
      const { result, problems, seconds } = await api.solve(this.project.id, edits);
      const clip = await Clip.open(this.project.id, result, () => this.draw());
      if (this.clip) {
        clip.show(this.clip.camera);
      }
      await clip.load(this.frame);
      if (turn === this.solving) {
        this.clip = clip;
        this.seconds = seconds;
        this.problems = problems;
        this.overlay.open(clip.meta, clip.size);
        this.timeline.open(clip);
        this.choose(clip.people.some(({ id }) => id === this.person) ? this.person : clip.people[0]?.id ?? null);
        element("time").max = clip.length - 1;
        this.lists();
        this.seek(this.frame);
        api.events(this.project.id, result).then(({ events }) => {
          clip.events = events;
          if (this.clip === clip) {
            this.timeline.open(clip);
            this.lists();
            this.draw();
          }
        }, () => {}); // a clip without analysis has no events
      }
    } finally {
      if (turn === this.solving) {
        element("studio").removeAttribute("aria-busy");
        element("keep").disabled = false;
      }
    }
  }

  // Shows the result of more edits, which Keep or Discard ends.
  async preview(edits, text) {
    this.done();
    const kept = this.draft;
    this.before ??= this.clip;
    this.draft = [...this.draft, ...edits];
    this.text = text;
    const shown = this.show([...this.project.edits, ...this.draft]);
    this.describe();
    try {
      await shown;
    } catch (error) {
      this.draft = kept;
      this.before = kept.length ? this.before : null;
      this.fail(error);
    }
    this.describe();
  }

  async keep() {
    if (this.draft.length === 0 || element("studio").hasAttribute("aria-busy")) {
      return;
    }
    await this.change(api.append(this.project.id, this.project.revision, this.draft), false);
  }

  async discard() {
    if (this.draft.length) {
      Object.assign(this, { draft: [], before: null });
      await this.show(this.project.edits);
      this.describe();
    }
  }

  async goTo(position) {
    await this.change(api.move(this.project.id, this.project.revision, position), true);
  }

  // Waits for a change of the history, then shows what is in effect.
  async change(request, solve) {
    try {
      this.project = await request;
      this.done();
    } catch (error) {
      if (error.status !== 409) {
        throw error;
      }
      this.project = await api.project(this.project.id);
      this.fail(error);
      solve = true;
    }
    Object.assign(this, { draft: [], before: null });
    if (solve) {
      await this.show(this.project.edits);
    }
    this.draw();
    this.describe();
  }

  describe() {
    const { project, draft } = this;
    if (!project) {
      return;
    }
    element("draft").hidden = draft.length === 0;
    const problems = this.problems?.length ? ` ${this.problems.join(". ")}.` : "";
    const busy = element("studio").hasAttribute("aria-busy");
    const { frames, of } = project.progress ?? {};
    const far = frames && of ? ` (the first correction computes the 2D again: ${frames} of ${of} frames)` : "";
    element("draft-text").textContent = busy ? `${this.text}: computing …${far}`
      : `${this.text}: grey is the pose before. Computed in ${this.seconds.toFixed(1)} s.${problems}`;
    element("undo").disabled = draft.length === 0 && project.position === 0;
    element("redo").disabled = project.position === project.steps;
    element("restore").disabled = project.position === 0;
    this.takeAway();
  }

  takeAway() {
    showFormats(this.about.formats, this.project.id, this.clip?.name ?? "first", this.person);
  }

  // Choices that depend on the result.
  lists() {
    const { clip } = this;
    const title = ({ id, name, doubtful }) => `${name ?? `Person ${id}`}${doubtful ? " (doubtful)" : ""}`;
    element("people").replaceChildren(...clip.people.map((person) => {
      const label = document.createElement("label");
      const radio = Object.assign(document.createElement("input"), { type: "radio", name: "person", checked: person.id === this.person });
      radio.addEventListener("change", () => this.choose(person.id));
      label.append(radio, Object.assign(document.createElement("span"), { textContent: title(person) }));
      return label;
    }));
    const keep = (id, options) => {
      const before = element(id).value;
      element(id).replaceChildren(...options);
      if (options.some(({ value }) => value === before)) {
        element(id).value = before;
      }
    };
    keep("other", [new Option("choose", ""), ...clip.people.filter(({ id }) => id !== this.person).map((one) => new Option(title(one), one.id))]);
    keep("compare-person", clip.people.map((one) => new Option(title(one), one.id)));
    keep("compare-clip", this.queue.projects.filter(({ state }) => state === "done").map(({ id, name }) => new Option(name, id)));
    keep("joint", clip.meta.movable.map((name) => new Option(name.replaceAll("_", " "), name)));
    const events = (clip.events ?? []).filter(({ person }) => person === this.person);
    element("events-line").hidden = events.length === 0;
    element("events").replaceChildren(new Option(`${events.length} events`, ""), ...events.map(({ name, side, time }) => (
      new Option(`${time.toFixed(2)} s ${side} ${name}`.replace("  ", " "), time))));
    element("camera-line").hidden = clip.meta.cameras.length === 0;
    keep("camera-choice", clip.meta.cameras.map(({ number }, row) => new Option(number, row + 1)));
    const angles = [...new Set(clip.meta.angles.map((name) => name.replace(/^(left|right)_/, "")))];
    keep("angle", angles.map((name) => new Option(name.replaceAll("_", " "), name)));
  }

  choose(person) {
    this.person = person;
    const found = this.clip?.people.find(({ id }) => id === person);
    element("name").value = found?.name ?? "";
    element("metres").value = found?.height ? found.height[0].toFixed(2) : "";
    if (this.clip) {
      this.lists();
      this.draw();
      this.describe();
    }
  }

  // Draws the current frame.
  draw() {
    const { clip, frame } = this;
    if (!clip) {
      return;
    }
    const people = clip.at(frame);
    if (people !== null) {
      const ghosts = this.before?.at(frame) ?? [];
      const joint = clip.meta.skeleton.names.indexOf(element("joint").value);
      this.overlay.show(people, this.draft.length ? ghosts : [], { person: this.person, joint });
      const shown = people.map((row) => ({ id: row.id, stage: row.stage, sigma: row.sigma, name: clip.nameOf(row.id) }));
      this.scene.trails = trails(clip, frame);
      this.scene.cameraHeight = clip.meta.world ? clip.meta.floor : null;
      this.scene.show(shown, clip.meta.drawing, 1000 * clip.times[frame]);
    }
    element("time").value = frame;
    element("time").setAttribute("aria-valuetext", `${clip.times[frame].toFixed(2)} s`);
    element("clock").textContent = `${clip.times[frame].toFixed(2)} s`;
    this.beside.follow(clip.times[frame], this.playing ? Number(element("speed").value) : 0);
    this.timeline.draw(frame, this.range);
    this.chart.draw(clip, this.person, element("angle").value, frame);
  }

  seek(frame) {
    if (this.clip) {
      this.frame = Math.min(this.clip.length - 1, Math.max(0, frame));
      this.video.currentTime = Math.max(0, this.clip.toVideo(this.clip.times[this.frame]) + GAP);
      this.draw();
    }
  }

  // Shows another camera of the moment.
  async look(camera) {
    this.pause();
    [this.clip, this.before].forEach((clip) => clip?.show(camera));
    this.video.src = api.video(this.project, this.clip.number);
    this.overlay.open(this.clip.meta, this.clip.size);
    await this.clip.load(this.frame);
    this.seek(this.frame);
  }

  play() {
    if (this.frame >= this.clip.length - 1) {
      this.seek(0);
    }
    this.playing = true;
    this.video.playbackRate = Number(element("speed").value);
    this.clock = { at: performance.now(), time: this.clip.times[this.frame] };
    this.video.play().catch(() => {}); // a video that the browser cannot play; the clock alone runs
    element("play").textContent = "Pause";
    requestAnimationFrame(() => this.tick());
  }

  pause() {
    this.playing = false;
    this.video.pause();
    this.beside.video.pause();
    element("play").textContent = "Play";
  }

  tick() {
    if (!this.playing || !this.clip) {
      return;
    }
    const { times } = this.clip;
    const runs = this.video.readyState > 1 && !this.video.paused;
    const passed = (Number(element("speed").value) * (performance.now() - this.clock.at)) / 1000;
    const time = runs ? this.clip.fromVideo(this.video.currentTime) : this.clock.time + passed;
    const [from, until] = this.range;
    if (element("loop").checked && until !== null && time > times[until]) {
      this.seek(from);
      this.clock = { at: performance.now(), time: times[from] };
    } else if (time >= times.at(-1) || this.video.ended) {
      this.frame = this.clip.length - 1;
      this.draw();
      this.pause();
      return;
    } else {
      this.frame = this.clip.frameAt(time);
      this.draw();
    }
    requestAnimationFrame(() => this.tick());
  }

  setRange(side) {
    this.range[side] = this.frame;
    const [from, until] = this.range;
    if (side === 0 && until !== null && until < from) {
      this.range[1] = null;
    }
    if (side === 1 && (from === null || from > until)) {
      this.range[0] = Math.min(from ?? 0, until);
    }
    const second = (frame) => (frame === null ? "…" : `${this.clip.times[frame].toFixed(2)} s`);
    element("range").textContent = this.range.map(second).join(" to ");
    this.draw();
  }

  async use(tool) {
    const [edits, text] = await TOOLS[tool](await stateOf(this));
    await this.preview(edits, text);
  }

  async moveJoint(person, joint, [x, y]) {
    this.pause();
    const place = this.clip.placeAt(this.frame, person);
    if (place) {
      this.choose(person);
      const name = this.clip.meta.skeleton.names[joint];
      await this.preview([{ edit: "joint", person: place, joint: name, x, y }], `Joint ${name.replaceAll("_", " ")} moved`);
    }
  }

  async gravity(start, end) {
    this.overlay.drawsLine = false;
    element("line").setAttribute("aria-pressed", "false");
    await this.preview([{ edit: "gravity", time: this.clip.ownTime(this.frame), start, end, ...this.clip.named }], "Gravity along the line");
  }

  listen() {
    const act = (id, action) => element(id).addEventListener("click", () => {
      Promise.resolve().then(action).catch((error) => this.fail(error));
    });
    act("back", () => this.close());
    act("play", () => (this.playing ? this.pause() : this.play()));
    act("previous", () => this.seek(this.frame - 1));
    act("next", () => this.seek(this.frame + 1));
    act("keep", () => this.keep());
    act("discard", () => this.discard());
    act("undo", () => this.undo());
    act("redo", () => this.goTo(this.project.position + 1));
    act("restore", () => this.goTo(0));
    act("from", () => this.setRange(0));
    act("until", () => this.setRange(1));
    act("picture", () => savePicture(this));
    act("blender", () => api.blender(this.project.id, this.clip.name));
    act("send", () => api.send(this.project.id, this.clip.name, element("link").value, element("link-address").value.trim()));
    act("in-step", async () => {
      this.pause();
      await this.beside.open(this.queue.projects.find(({ id }) => id === element("compare-clip").value));
      this.draw();
    });
    act("other-close", () => this.beside.close());
    act("send-stop", () => api.stopSending());
    element("camera-choice").addEventListener("change", ({ target }) => this.look(Number(target.value)).catch((error) => this.fail(error)));
    act("line", () => {
      this.pause();
      this.overlay.drawsLine = !this.overlay.drawsLine;
      element("line").setAttribute("aria-pressed", String(this.overlay.drawsLine));
    });
    document.querySelectorAll("[data-tool]").forEach((button) => button.addEventListener("click", () => {
      this.pause();
      this.use(button.dataset.tool).catch((error) => this.fail(error));
    }));
    element("edits-open").addEventListener("change", (event) => {
      const [file] = event.target.files;
      event.target.value = "";
      readEdits(file).then((edits) => this.preview(edits, `Corrections of ${file.name}`)).catch((error) => this.fail(error));
    });
    ["compare-clip", "compare-person"].forEach((id) => element(id).addEventListener("change", () => this.takeAway()));
    element("time").addEventListener("input", (event) => this.seek(Number(event.target.value)));
    element("speed").addEventListener("change", () => {
      this.video.playbackRate = Number(element("speed").value);
      this.clock = { at: performance.now(), time: this.clip.times[this.frame] };
    });
    element("events").addEventListener("change", ({ target }) => target.value && this.seek(this.clip.frameAt(Number(target.value))));
    ["joint", "angle"].forEach((id) => element(id).addEventListener("change", () => this.draw()));
    this.video.addEventListener("error", () => {
      if (this.project) {
        element("views").dataset.view = "both";
        this.unplayable = true;
        this.fail(new Error("This browser cannot play the video. A copy that it plays is being made; the joints are shown without it."));
      }
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  undo() {
    return this.draft.length ? this.discard() : this.goTo(Math.max(0, this.project.position - 1));
  }

  key(event) {
    const { target } = event;
    const typing = target.closest("input:not([type=range]):not([type=radio]):not([type=checkbox]), select, textarea");
    const pressing = [" ", "Enter"].includes(event.key) && target.closest("button, a, label, summary, input");
    if (!this.clip || typing || pressing || event.altKey) {
      return;
    }
    const second = (step) => this.clip.frameAt(Math.max(0, this.clip.times[this.frame] + step));
    const people = this.clip.people.map(({ id }) => id);
    const keys = event.ctrlKey || event.metaKey ? {
      z: () => this.undo(), y: () => this.project.position < this.project.steps && this.goTo(this.project.position + 1),
    } : {
      " ": () => (this.playing ? this.pause() : this.play()), ",": () => this.seek(this.frame - 1), ".": () => this.seek(this.frame + 1),
      "[": () => this.seek(second(-1)), "]": () => this.seek(second(1)), i: () => this.setRange(0), o: () => this.setRange(1),
      n: () => this.choose(people[(people.indexOf(this.person) + 1) % people.length]),
      Enter: () => this.keep(), Escape: () => this.discard(),
    };
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action) {
      event.preventDefault();
      Promise.resolve().then(action).catch((error) => this.fail(error));
    }
  }
}

const studio = new Studio();
window.studio = studio;
studio.start();
