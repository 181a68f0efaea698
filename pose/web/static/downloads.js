// The list of finished recordings, and saving a single picture.

import { element } from "./show.js";

const MB = 1e6;

function stamp() {
  const now = new Date(Date.now() - 60000 * new Date().getTimezoneOffset());
  return now.toISOString().slice(0, 19).replaceAll(":", "").replace("T", "-");
}

function size(bytes) {
  return bytes < 0.1 * MB ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / MB).toFixed(1)} MB`;
}

export class Downloads {
  add(address, name, note) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.textContent = name;
    const words = document.createElement("span");
    words.textContent = note;
    const item = document.createElement("li");
    item.append(link, words);
    element("files").prepend(item);
    element("downloads").hidden = false;
  }

  addVideo(video, ending) {
    this.add(URL.createObjectURL(video), `pose-${stamp()}.${ending}`, `video, ${size(video.size)}`);
  }

  // What the server recorded: see "recorded" in docs/guides/web.md.
  addFiles({ files, frames, seconds, problem }) {
    const what = `${frames} frames, ${seconds.toFixed(1)} s${problem ? `, ${problem}` : ""}`;
    files.forEach(({ url, name, bytes }) => this.add(url, name, `poses, ${what}, ${size(bytes)}`));
  }

  save(blob, ending) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `pose-${stamp()}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}
