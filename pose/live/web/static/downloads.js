// The list of finished recordings, and saving of snapshots.

import { element } from "./show.js";

const MB = 1e6;
const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;

function stamp() {
  const now = new Date(Date.now() - 60000 * new Date().getTimezoneOffset());
  return now.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
}

// Name of a recording that has no name from the server.
export function fallbackName() {
  return `live-${stamp()}`;
}

function size(bytes) {
  return bytes < 0.1 * MB ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / MB).toFixed(1)} MB`;
}

function timeIn(seconds) {
  const then = new Date(Date.now() + 1000 * seconds);
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return then.toDateString() === new Date().toDateString() ? time : `${then.toLocaleDateString()} ${time}`;
}

export class Downloads {
  constructor() {
    this.items = new Map(); // name of the recording -> its list item
  }

  // The recordings that the server offers: see "recordings" in docs/reference/web-protocol.md.
  update(recordings) {
    const offered = new Set(recordings.map(({ name }) => name));
    this.items.forEach((item, name) => {
      if (!offered.has(name) && !item.querySelector("a.used, a.view")) { // expired
        item.remove();
        this.items.delete(name);
      }
    });
    recordings.filter(({ name }) => !this.items.get(name)?.classList.contains("complete")).forEach((recording) => {
      const { name, frames, seconds, problem, expires_in: left, files } = recording;
      const item = this.item(name);
      item.classList.add("complete");
      const parts = [`${frames} frames`, `${seconds.toFixed(1)} s`, problem, `kept until ${timeIn(left)}`];
      item.querySelector("span").textContent = parts.filter(Boolean).join(", ");
      files.forEach((file) => this.link(item, file.url, file.name, file.name.slice(name.length + 1), file.bytes));
      if (LOOPBACK.test(location.hostname) && files.length) {
        this.offerStudio(item, `${files[0].url.slice(0, files[0].url.lastIndexOf("/"))}/studio`);
      }
    });
    this.show();
  }

  // Opens the recording in the studio, where it can be corrected. That runs on this computer only.
  offerStudio(item, address) {
    const open = Object.assign(document.createElement("button"), { type: "button", textContent: "Open in studio" });
    open.addEventListener("click", async () => {
      open.disabled = true;
      const answer = await fetch(address, { method: "POST" }).catch(() => null);
      open.disabled = false;
      if (answer?.ok) {
        window.open((await answer.json()).address, "_blank", "noopener");
      } else {
        item.querySelector("span").textContent = answer ? await answer.text() : "The server does not answer.";
      }
    });
    item.append(open);
  }

  // A video of the page, recorded by this browser. It is lost when the page is closed.
  addView(name, video, ending) {
    const item = this.item(name);
    const link = this.link(item, URL.createObjectURL(video), `${name}-view.${ending}`, `view.${ending}`, video.size);
    link.classList.add("view");
    link.title = "Video of this page, recorded by this browser. It is lost when the page is closed.";
    this.show();
  }

  item(name) {
    if (!this.items.has(name)) {
      const item = document.createElement("li");
      const title = document.createElement("b");
      title.textContent = name;
      item.append(title, document.createElement("span"));
      element("files").prepend(item);
      this.items.set(name, item);
    }
    return this.items.get(name);
  }

  link(item, address, name, text, bytes) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.textContent = `${text} (${size(bytes)})`;
    link.addEventListener("click", () => link.classList.add("used"));
    item.append(link);
    return link;
  }

  show() {
    element("downloads").hidden = this.items.size === 0;
  }

  save(blob, ending) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `snapshot-${stamp()}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}
