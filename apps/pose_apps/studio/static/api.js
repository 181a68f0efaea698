// The HTTP interface of the studio, version 1.

const BASE = "/api/v1";

export class RefusedError extends Error {
  constructor(status, text) {
    super(text || `The server answered ${status}.`);
    this.status = status;
  }
}

async function answer(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new RefusedError(0, "The studio does not answer. Is pose-studio still running?");
  }
  if (!response.ok) {
    throw new RefusedError(response.status, (await response.text()).slice(0, 300));
  }
  return response.status === 204 ? null : response.json();
}

const post = (path, body) => answer(`${BASE}${path}`, {
  method: "POST", body: JSON.stringify(body ?? {}), headers: { "Content-Type": "application/json" },
});

// Exchanges the token of the address for a cookie, and removes it from the address.
export async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (token !== null) {
    given.delete("token");
    history.replaceState(null, "", `#${given}`);
    await answer("/session", { method: "POST", body: JSON.stringify({ token }) });
  }
}

export const file = (edits) => ({ format: "pose-edits", version: 1, edits });
export const about = () => answer(BASE);
export const projects = () => answer(`${BASE}/projects`);
export const project = (id) => answer(`${BASE}/projects/${id}`);
export const demo = () => post("/demo");
export const phone = () => answer(`${BASE}/phone`);
export const send = (id, name, link, to) => post(`/projects/${id}/results/${name}/send`, { link, address: to });
export const stopSending = () => post("/send/stop");
export const blender = (id, name) => post(`/projects/${id}/results/${name}/blender`);
export const cancel = (id) => post(`/projects/${id}/cancel`);
export const run = (id, preset) => post(`/projects/${id}/run`, { preset });
export const solve = (id, edits) => post(`/projects/${id}/solve`, file(edits));
export const append = (id, revision, edits) => post(`/projects/${id}/edits`, { revision, edits: file(edits) });
export const move = (id, revision, position) => post(`/projects/${id}/edits`, { revision, position });
export const result = (id, name) => answer(`${BASE}/projects/${id}/results/${name}`);
export const frames = (id, name, first, count, camera) => (
  answer(`${BASE}/projects/${id}/results/${name}/frames?first=${first}&count=${count}&camera=${camera}`));
export const events = (id, name) => answer(`${BASE}/projects/${id}/results/${name}/events`);
// The video of a camera of a project: its copy in which frames are found fast, if there is one.
export const video = ({ id, previews }, camera) => (
  address(id, `video?camera=${camera}${previews.includes(camera) ? "&preview=1" : ""}`));
export const address = (id, rest) => `${BASE}/projects/${id}/${rest}`;

// Sends a video; progress is called with the share that was sent. settings: preset, height and number of cameras.
export const upload = (video, name, settings, progress) => (
  put(video, `${BASE}/projects?${new URLSearchParams({ name, ...settings })}`, progress));

// Sends the video of the next camera of a project.
export const uploadCamera = (id, video, name, progress) => (
  put(video, `${BASE}/projects/${id}/cameras?${new URLSearchParams({ name })}`, progress));

// Sends a file, and returns the answer.
function put(file, path, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.upload.addEventListener("progress", (event) => progress(event.loaded / Math.max(event.total, 1)));
    request.addEventListener("load", () => (
      request.status === 201 ? resolve(JSON.parse(request.responseText))
        : reject(new RefusedError(request.status, request.responseText.slice(0, 300)))));
    request.addEventListener("error", () => reject(new RefusedError(0, "The video could not be sent.")));
    request.send(file);
  });
}
