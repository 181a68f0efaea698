// The page: joins camera, connection, canvases and controls.

import { Camera } from "./camera.js";
import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { Downloads } from "./downloads.js";
import { Meter } from "./meter.js";
import { Picture } from "./picture.js";
import { Recorder } from "./recorder.js";
import { Scene } from "./scene.js";
import { Sender } from "./sender.js";
import { askToken, element, say, showState, showStatus } from "./show.js";

const STATUS_EVERY = 500; // ms

const picture = new Picture(element("picture"));
const scene = new Scene(element("scene"));
const recorder = new Recorder(element("picture"), element("scene"));
const downloads = new Downloads();
const meter = new Meter();
let hello = null;
let status = null;
let shown = null; // { picture, people }: what the canvases show
let paused = false;
let received = Promise.resolve();
let unanswered = 0; // results drawn while paused, which the server still waits for

const connection = new Connection({
  state: showState,
  signIn: (wrong) => askToken(wrong, (token) => connection.open(token)),
  message(message, jpeg) {
    const { session } = connection;
    received = received // in their order, though decoding takes turns
      .then(() => (session === connection.session ? receive(message, jpeg) : null))
      .catch((error) => console.warn("a message could not be shown:", error)); // the next one may be
  },
  lost,
});
const sender = new Sender(connection);
const camera = new Camera(
  (video, captured) => {
    if (hello !== null && !paused) {
      sender.offer(video, captured, hello.limits);
    }
  },
  () => {
    clear();
    controls.showCamera(camera);
    say("The camera is gone: it was unplugged or taken by the system. Connect it, then press Start camera.");
  },
);

const controls = new Controls({
  async start(device) {
    try {
      await camera.start(device);
      say("");
    } catch (error) {
      say(error.message);
    }
    controls.showCamera(camera);
  },
  stopCamera() {
    camera.stop();
    clear();
    controls.showCamera(camera);
  },
  pause(on) {
    paused = on;
    for (; !paused && unanswered > 0; unanswered -= 1) {
      connection.send({ type: "ack" });
    }
    allow();
  },
  mirror(on) {
    picture.mirrored = on;
    scene.view.mirrored = on;
    redraw();
  },
  record(on) {
    if (on) {
      startRecording();
    } else {
      stopRecording();
    }
  },
  snapshot() {
    element("picture").toBlob((blob) => downloads.save(blob, "png"), "image/png");
  },
});

async function receive(message, jpeg) {
  if (message.type === "hello") {
    hello = message;
    sender.open();
    element("views").dataset.stale = "false";
    controls.greet(hello, camera);
  } else if (message.type === "result") {
    await receiveResult(message, jpeg);
  } else if (message.type === "status") {
    status = message;
    showState(message.message ? "bad" : "good", message.message ? "Waiting" : "Connected", message.message);
  } else if (message.type === "recorded") {
    downloads.addFiles(message);
    controls.showRecording(false);
    allow();
    await finishVideo();
  }
}

async function receiveResult(message, jpeg) {
  let latency = null;
  try {
    latency = await showResult(message, jpeg);
  } finally { // the server waits for the answer, whatever became of it
    if (paused) {
      unanswered += 1;
    } else { // from where the server had it; so the server knows how far ahead to predict
      connection.send(latency === null ? { type: "ack" } : { type: "ack", after: latency - 1000 * message.latency });
    }
  }
}

// How long after its capture it was drawn, ms; null where that is not known.
async function showResult(message, jpeg) {
  let captured = null;
  if (jpeg !== null) {
    const decoded = await createImageBitmap(jpeg);
    captured = connection.localTime(message.captured);
    show(decoded, message.people);
  } else {
    const sent = sender.take(message.number);
    captured = sent?.captured ?? null;
    if (sent !== null) {
      show(sent.picture, message.people);
    }
  }
  if (shown === null) {
    return null;
  }
  const now = performance.now();
  const latency = captured === null ? null : now - captured;
  meter.add(now, latency);
  return latency;
}

function show(image, people) {
  if (paused) {
    image.close();
    return;
  }
  shown?.picture.close();
  shown = { picture: image, people };
  allow();
  redraw();
  if (recorder.on) {
    recorder.draw();
  }
}

function redraw() {
  if (shown !== null) {
    picture.draw(shown.picture, shown.people, hello);
    scene.show(shown.people, hello, performance.now());
  }
}

// Nobody is seen any more.
function clear() {
  sender.forget();
  meter.clear();
  shown?.picture.close();
  shown = null;
  picture.clear();
  scene.show([], hello, performance.now());
  controls.resume();
  allow();
}

function allow() {
  controls.allow({ live: connection.ready, picture: shown !== null, paused });
}

function startRecording() {
  if (shown === null || !connection.ready) {
    say("There is nothing to record yet.");
    return;
  }
  if (!recorder.start(controls.view)) {
    say("This browser cannot record video; the poses are recorded.");
  }
  connection.send({ type: "record", on: true });
  controls.showRecording(true);
  allow();
}

function stopRecording() {
  connection.send({ type: "record", on: false }); // the answer, "recorded", ends the video too
}

async function finishVideo() {
  if (recorder.on) {
    const { video, ending } = await recorder.stop();
    downloads.addVideo(video, ending);
  }
}

// ended: the video is over; else what is shown is no longer live.
function lost(ended) {
  element("views").dataset.stale = String(!ended && shown !== null);
  sender.close();
  meter.clear();
  status = null;
  unanswered = 0;
  controls.showRecording(false);
  controls.resume();
  allow();
  finishVideo();
}

setInterval(() => showStatus(meter, status, shown), STATUS_EVERY);
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given !== null) {
  history.replaceState(null, "", location.pathname); // the token is not left in the address
}
connection.open(given);
