// The page of a phone in the local network: it films with the phone's own camera, and sends the video.

const element = (id) => document.getElementById(id);
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

function say(text, share = null) {
  element("said").textContent = text;
  element("sent").hidden = share === null;
  element("sent").value = share ?? 0;
}

function send([video]) {
  if (!video) {
    return;
  }
  const stamp = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  const ending = video.type === "video/webm" ? "webm" : video.type === "video/quicktime" ? "mov" : "mp4";
  const name = /\.[a-z0-9]{3,4}$/i.test(video.name) ? video.name : `phone ${stamp}.${ending}`;
  const request = new XMLHttpRequest();
  request.open("POST", `/upload?${new URLSearchParams({ name, height: element("height").value })}`);
  request.setRequestHeader("Authorization", `Bearer ${token}`);
  request.upload.addEventListener("progress", (event) => {
    const share = event.loaded / Math.max(event.total, 1);
    say(`sending, ${Math.round(100 * share)} %`, share);
  });
  request.addEventListener("load", () => (
    say(request.status === 201 ? "Sent. The computer processes it now." : request.responseText.slice(0, 300))));
  request.addEventListener("error", () => say("The video could not be sent. Is the phone in the computer's network?"));
  say("sending", 0);
  request.send(video);
}

["film", "choose"].forEach((id) => element(id).addEventListener("change", ({ target }) => {
  send([...target.files]);
  target.value = "";
}));
