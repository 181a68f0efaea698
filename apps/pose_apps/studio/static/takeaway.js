// What can be taken away: a link for each format, and the image of a frame.

import * as api from "./api.js";

const element = (id) => document.getElementById(id);
let shown = "";

export function showFormats(formats, id, result, person) {
  element("edits-file").href = api.address(id, "edits");
  const [clip, other] = ["compare-clip", "compare-person"].map((choice) => element(choice).value);
  const key = [id, result, person, clip, other].join(" ");
  if (shown === key) {
    return;
  }
  shown = key;
  element("formats").replaceChildren(...formats.map(({ name, for: purpose, shown: isPage }) => {
    const row = document.createElement("li");
    const link = Object.assign(document.createElement("a"), { className: "button", textContent: name });
    Object.assign(link, isPage ? { target: "_blank", rel: "noopener" } : { download: "" });
    const query = new URLSearchParams({
      ...(name === "compare" ? { other: clip, people: `${person},${other}` } : {}), ...(isPage ? { show: 1 } : {}),
    });
    link.href = api.address(id, `results/${result}/exports/${name}?${query}`);
    row.append(link, Object.assign(document.createElement("span"), { textContent: purpose }));
    return row;
  }));
}

// Shows the programs that can receive the result at once.
export function showLinks({ links, blender }) {
  element("blender").hidden = !blender;
  element("send-line").hidden = links.length === 0;
  element("link").replaceChildren(...links.map(({ name }) => new Option(name, name)));
  const describe = () => {
    element("link-purpose").textContent = links.find(({ name }) => name === element("link").value)?.for ?? "";
  };
  element("link").addEventListener("change", describe);
  describe();
}

// The current frame of the video as it was sent; that of its copy if the browser does not play the video.
function sharpest({ project, clip, video }) {
  if (!project.previews.includes(clip.number)) {
    return video;
  }
  const sent = Object.assign(document.createElement("video"), { muted: true, src: api.address(project.id, `video?camera=${clip.number}`) });
  return new Promise((resolve) => {
    sent.addEventListener("loadeddata", () => { sent.currentTime = video.currentTime; }, { once: true });
    sent.addEventListener("seeked", () => resolve(sent));
    sent.addEventListener("error", () => resolve(video));
  });
}

// Saves the video's current frame with the joints, in the size of the video.
export async function savePicture({ project, clip, video, overlay, frame }) {
  const [width, height] = clip.size;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  context.drawImage(await sharpest({ project, clip, video }), 0, 0, width, height);
  overlay.paint(context, Math.max(0.5, 800 / width));
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `frame-${frame}.png` });
  link.click();
  URL.revokeObjectURL(link.href);
}

// The edits of a file; the server checks them when their result is computed.
export async function readEdits(file) {
  let content = null;
  try {
    content = JSON.parse(await file.text());
  } catch {
    // said below
  }
  if (content?.format !== "pose-edits" || content.version !== 1 || !Array.isArray(content.edits)) {
    throw new Error(`${file.name}: not a file of corrections of version 1.`);
  }
  return content.edits;
}
