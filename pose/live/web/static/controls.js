// Buttons and keys.

import { element } from "./show.js";

const VIEWS = ["picture", "both", "scene"];
const KEYS = { " ": "pause", r: "record", s: "snapshot", m: "mirror" };

export class Controls {
  // actions: start(device), stopCamera(), pause(on), mirror(on), record(on), snapshot(), replay()
  constructor(actions) {
    this.actions = actions;
    element("start").addEventListener("click", () => this.start());
    element("camera-off").addEventListener("click", () => actions.stopCamera());
    element("camera").addEventListener("change", () => this.start());
    element("play-again").addEventListener("click", () => actions.replay());
    element("snapshot").addEventListener("click", () => actions.snapshot());
    element("record").addEventListener("click", () => actions.record(!pressed("record")));
    for (const name of ["pause", "mirror"]) {
      element(name).addEventListener("click", () => this.toggle(name));
    }
    element("help-open").addEventListener("click", () => element("help").showModal());
    this.radios = VIEWS.map((view) => document.querySelector(`input[name=view][value=${view}]`));
    this.radios.forEach((radio) => radio.addEventListener("change", () => this.look(radio.value)));
    this.look(this.view);
    document.addEventListener("keydown", (event) => this.key(event));
  }

  // "picture", "both" or "scene".
  get view() {
    return this.radios.find((radio) => radio.checked).value;
  }

  look(view) {
    this.radios[VIEWS.indexOf(view)].checked = true;
    element("views").dataset.view = view;
  }

  toggle(name) {
    press(name, !pressed(name));
    element("pause").textContent = pressed("pause") ? "Resume" : "Pause";
    this.actions[name](pressed(name));
  }

  async start() {
    element("start").disabled = true;
    await this.actions.start(element("camera").value);
    element("start").disabled = false;
  }

  // No camera is needed if the server shows its own source.
  greet(hello, camera) {
    this.ownCamera = hello.mode === "camera";
    if (!this.greeted && pressed("mirror") !== hello.mirror) {
      this.toggle("mirror");
    }
    this.greeted = true;
    this.showCamera(camera);
  }

  async showCamera(camera) {
    element("welcome").hidden = !this.ownCamera || camera.on;
    element("camera-off").hidden = !this.ownCamera || !camera.on;
    if (!camera.on) {
      return;
    }
    const devices = await camera.list();
    element("cameras").hidden = devices.length < 2;
    element("camera").replaceChildren(...devices.map((device, number) => {
      const name = device.label || `Camera ${number + 1}`;
      return new Option(name, device.deviceId, false, device.deviceId === camera.device);
    }));
  }

  // seconds: duration of the recording so far.
  showRecording(on, seconds = 0) {
    press("record", on);
    const whole = Math.floor(seconds);
    const text = on ? `Stop ${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}` : "Record";
    if (element("record").textContent !== text) {
      element("record").textContent = text;
    }
  }

  offerReplay(on) {
    element("play-again").hidden = !on;
  }

  // Enable the available actions. live: connected. picture: an image is shown. stale: it is outdated.
  allow({ live, picture, paused, stale }) {
    element("pause").disabled = pressed("record") || !(live && (picture || paused)); // no gaps in a recording
    element("record").disabled = !(live && picture && !paused && !stale) && !pressed("record");
    element("snapshot").disabled = !picture;
    element("mirror").disabled = !picture;
  }

  resume() {
    if (pressed("pause")) {
      this.toggle("pause");
    }
  }

  key(event) {
    const typing = event.target.closest("input[type=password], select, dialog[open]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const key = event.key.toLowerCase();
    if (key === " " && event.target.closest("button, label")) {
      return; // Space activates the focused element
    }
    if (key === "v") {
      this.look(VIEWS[(VIEWS.indexOf(this.view) + 1) % VIEWS.length]);
    } else if (key === "?") {
      element("help").showModal();
    } else if (key in KEYS) {
      element(KEYS[key]).click();
    } else {
      return;
    }
    event.preventDefault();
  }
}

function pressed(name) {
  return element(name).getAttribute("aria-pressed") === "true";
}

function press(name, on) {
  element(name).setAttribute("aria-pressed", String(on));
}
