// The clips: upload, queue with progress, and the choice of one.

import * as api from "./api.js";

const BUSY_MS = 700;
const IDLE_MS = 4000;
const element = (id) => document.getElementById(id);
const MAX_CAMERAS = 8;
const STATES = { incomplete: "waiting for the other cameras", queued: "waiting", running: "running", done: "ready", failed: "failed", cancelled: "cancelled" };

function button(text, action) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  made.addEventListener("click", action);
  return made;
}

export class Queue {
  // open(project), changed(projects), failed(error).
  constructor({ open, changed, failed }) {
    Object.assign(this, { open, changed, failed, sending: new Map(), line: Promise.resolve(), chosen: [], projects: [], presets: {} });
    element("files").addEventListener("change", (event) => {
      this.take([...event.target.files]);
      event.target.value = "";
    });
    const drop = element("drop");
    ["dragenter", "dragover"].forEach((name) => drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    }));
    ["dragleave", "drop"].forEach((name) => drop.addEventListener(name, () => drop.classList.remove("over")));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.take([...event.dataTransfer.files]);
    });
    element("several").addEventListener("close", ({ target }) => {
      const files = this.chosen;
      this.chosen = [];
      if (target.returnValue === "separate") {
        this.send(files);
      } else if (target.returnValue === "cameras") {
        this.sendCameras(files).catch(failed).finally(() => this.poll());
      }
    });
    element("demo").addEventListener("click", () => api.demo().then(() => this.poll()).catch(failed));
    element("phone").addEventListener("click", () => this.showPhone().catch(failed));
    element("record").addEventListener("click", () => this.record().catch(failed));
  }

  start({ presets, phone }) {
    this.presets = presets;
    element("phone").hidden = !phone;
    element("preset").replaceChildren(...Object.entries(presets).map(([value, text]) => new Option(text, value, value === "standard", value === "standard")));
    this.poll();
  }

  async poll() {
    clearTimeout(this.timer);
    try {
      this.projects = await api.projects();
      this.draw();
      this.changed(this.projects);
    } catch (error) {
      this.failed(error);
    }
    const busy = this.projects.some(({ state }) => state === "queued" || state === "running");
    this.timer = setTimeout(() => this.poll(), busy ? BUSY_MS : IDLE_MS);
  }

  // Several videos may be those of one moment.
  take(files) {
    this.chosen = files;
    element("several-cameras").disabled = files.length > MAX_CAMERAS;
    if (files.length > 1) {
      element("several").returnValue = "";
      element("several").showModal();
    } else {
      this.send(files);
    }
  }

  get settings() {
    return { preset: element("preset").value, height: element("height").value };
  }

  send(files) {
    files.forEach((file) => this.sent(file, (progress) => api.upload(file, file.name, this.settings, progress)).catch(this.failed));
  }

  async sendCameras([first, ...others]) {
    const settings = { ...this.settings, cameras: 1 + others.length };
    const { id } = await this.sent(first, (progress) => api.upload(first, first.name, settings, progress));
    for (const file of others) {
      await this.sent(file, (progress) => api.uploadCamera(id, file, file.name, progress));
    }
  }

  // Sends a file after those before it, and shows its progress.
  async sent(file, send) {
    const show = (share) => {
      this.sending.set(file, share);
      this.draw();
    };
    show(null);
    const sent = this.line.then(() => send(show));
    this.line = sent.catch(() => {});
    try {
      return await sent;
    } finally {
      this.sending.delete(file);
      this.poll();
    }
  }

  async showPhone() {
    const panel = element("phone-panel");
    panel.hidden = !panel.hidden;
    element("phone").setAttribute("aria-expanded", String(!panel.hidden));
    if (panel.hidden) {
      return;
    }
    const { address, code } = await api.phone();
    element("phone-address").textContent = address;
    const canvas = element("phone-code");
    canvas.hidden = code === null;
    if (code !== null) {
      Object.assign(canvas, { width: code.length, height: code.length });
      const context = canvas.getContext("2d");
      context.fillStyle = "#fff";
      context.fillRect(0, 0, code.length, code.length);
      context.fillStyle = "#000";
      code.forEach((row, y) => [...row].forEach((dark, x) => dark === "1" && context.fillRect(x, y, 1, 1)));
    }
  }

  // Records the camera of this computer until the second click.
  async record() {
    if (this.recorder) {
      this.recorder.stop();
      return;
    }
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 1280, height: 720 } });
    const [parts, view] = [[], element("camera")];
    view.srcObject = stream;
    view.hidden = false;
    view.play();
    this.recorder = new MediaRecorder(stream);
    this.recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
    this.recorder.addEventListener("stop", () => {
      stream.getTracks().forEach((track) => track.stop());
      view.hidden = true;
      this.recorder = null;
      this.label();
      const kind = parts[0].type.startsWith("video/mp4") ? "mp4" : "webm";
      const name = `camera ${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.${kind}`;
      this.send([new File(parts, name)]);
    });
    this.recorder.start();
    this.label();
  }

  label() {
    element("record").setAttribute("aria-pressed", String(Boolean(this.recorder)));
    element("record").textContent = this.recorder ? "Stop recording" : "Record with this camera";
  }

  draw() {
    const focused = document.activeElement?.dataset?.key;
    const sent = [...this.sending].map(([{ name }, share]) => (
      this.item(name, share === null ? "waiting to be sent" : `sending, ${Math.round(100 * share)} %`, share)));
    const items = [...this.projects].reverse().map((project) => {
      const { id, state, problem, progress } = project;
      const name = project.cameras > 1 ? `${project.name} (${project.cameras} cameras)` : project.name;
      const [text, share] = this.describe(state, progress, problem);
      const buttons = [];
      if (state === "done") {
        buttons.push(button("Open", () => this.open(project).catch(this.failed)));
      } else if (state === "queued" || state === "running") {
        buttons.push(button("Cancel", () => api.cancel(id).then(() => this.poll(), this.failed)));
      }
      if (!["queued", "running", "incomplete"].includes(state)) {
        buttons.push(button("Run again", () => api.run(id, element("preset").value).then(() => this.poll(), this.failed)));
      }
      buttons.forEach((each) => {
        each.dataset.key = `${id} ${each.textContent}`;
        each.setAttribute("aria-label", `${each.textContent}: ${name}`);
      });
      return this.item(name, text, share, api.address(id, "thumbnail"), buttons);
    });
    element("clips").replaceChildren(...sent, ...items);
    if (focused) {
      [...document.querySelectorAll("#clips button")].find((each) => each.dataset.key === focused)?.focus();
    }
  }

  describe(state, progress, problem) {
    if (state !== "running" || !progress) {
      return [`${STATES[state]}${problem ? `: ${problem}` : ""}`, null];
    }
    const { frames, of, seconds } = progress;
    const rate = frames / Math.max(seconds, 1e-3);
    const left = of ? `, ${Math.ceil((of - frames) / Math.max(rate, 1e-3))} s left` : "";
    return [`${frames}${of ? ` of ${of}` : ""} frames, ${rate.toFixed(1)} a second${left}`, of ? frames / of : null];
  }

  item(name, text, share, image, buttons = []) {
    const row = document.createElement("li");
    if (image) {
      row.append(Object.assign(document.createElement("img"), { src: image, alt: "", loading: "lazy" }));
    }
    const title = Object.assign(document.createElement("b"), { textContent: name });
    const state = Object.assign(document.createElement("span"), { className: "state", textContent: text });
    row.append(title, state);
    if (share !== null) {
      const bar = Object.assign(document.createElement("progress"), { max: 1, value: share });
      bar.setAttribute("aria-label", `Progress of ${name}`);
      row.append(bar);
    }
    row.append(...buttons);
    return row;
  }
}
