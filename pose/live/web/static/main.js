// The page: joins camera, connection, canvases and controls.

import { Body, bytes, readMesh } from "./body.js";
import { Camera } from "./camera.js";
import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { Downloads, fallbackName } from "./downloads.js";
import { Meter } from "./meter.js";
import { Picture } from "./picture.js";
import { Recorder } from "./recorder.js";
import { Scene } from "./scene.js";
import { Sender } from "./sender.js";
import { askToken, element, say, showState, showStatus } from "./show.js";

const STATUS_EVERY = 500; // ms
const STALE_AFTER = 3000; // ms without a new image
const STALE_AFTER_MESSAGE = 1000; // ms, the same if the server reports a problem

const picture = new Picture(element("picture"));
const scene = new Scene(element("scene"));
const recorder = new Recorder(element("picture"), element("scene"));
const downloads = new Downloads();
const meter = new Meter();
let hello = null;
let mesh = null; // of the bodies; null without them
const bodies = new Map(); // by id: { shape, body }
let status = null;
let shown = null; // { picture, people, at }: content of the canvases, and the time of its display
let recording = false;
let recordingName = ""; // name given by the server
let paused = false;
let ended = false; // the source has ended
let received = Promise.resolve();
let unanswered = 0; // results drawn while paused, not yet acknowledged to the server

const connection = new Connection({
  state: showState,
  signIn: (wrong) => askToken(wrong, (token) => connection.open(token)),
  message(message, jpeg) {
    const { session } = connection;
    if (message.type in recordingMessages) {
      recordingMessages[message.type](message);
      return;
    }
    received = received // in order, although decoding is asynchronous
      .then(() => (session === connection.session ? receive(message, jpeg) : null))
      .catch((error) => console.warn("a message could not be shown:", error)); // later messages may be valid
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
    stopCamera();
    say("The camera is no longer available. Connect it, then press Start camera.");
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
  stopCamera,
  replay() {
    controls.offerReplay(false);
    connection.open();
  },
  pause(on) {
    paused = on;
    if (shown !== null) {
      shown.at = performance.now(); // the next one may take a moment
    }
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
    mesh = hello.mesh && readMesh(hello.mesh);
    bodies.clear();
    ended = false;
    sender.open();
    controls.offerReplay(false);
    controls.greet(hello, camera);
  } else if (message.type === "result") {
    await receiveResult(message, jpeg);
  } else if (message.type === "body") {
    const { person, shape, rest } = message;
    bodies.set(person, { shape, body: Body.of(mesh, new Int16Array(bytes(rest).buffer)) });
  } else if (message.type === "status") {
    status = message;
    if (message.recording !== null) {
      showRecording(true, message.recording.seconds);
    }
    check();
  }
}

// These are not queued behind images: the last ones arrive just before the connection closes.
const recordingMessages = {
  recording({ name }) {
    recordingName = name;
  },
  recordings({ recordings }) {
    downloads.update(recordings);
  },
  recorded({ files, problem }) {
    showRecording(false);
    if (files.length === 0) {
      say(`Recording failed: ${problem}.`);
    }
    finishView();
  },
};

function showRecording(on, seconds) {
  recording = on;
  controls.showRecording(on, seconds);
  allow();
}

async function receiveResult(message, jpeg) {
  let latency = null;
  try {
    latency = await showResult(message, jpeg);
  } finally { // the server expects an answer, even after an error
    if (paused) {
      unanswered += 1;
    } else { // latency after the server, from which it computes the prediction time
      connection.send(latency === null ? { type: "ack" } : { type: "ack", after: latency - 1000 * message.latency });
    }
  }
}

// Time from capture to display, ms; null if unknown.
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
  poseBodies(people);
  shown = { picture: image, people, at: performance.now() };
  allow();
  redraw();
  if (recorder.on) {
    recorder.draw();
  }
}

// Adds posed bodies to the people, if the server sends them.
function poseBodies(people) {
  people.forEach((person) => {
    const known = bodies.get(person.id);
    if (person.figure && known?.shape === person.figure.shape) {
      known.body.poseRow(person.figure.pose, mesh.moving);
      person.body = known.body;
    }
  });
  const here = new Set(people.map(({ id }) => id));
  [...bodies.keys()].filter((id) => !here.has(id)).forEach((id) => bodies.delete(id));
}

function redraw() {
  if (shown !== null) {
    picture.draw(shown.picture, shown.people, hello);
    scene.show(shown.people, hello, performance.now());
  }
}

function stopCamera() {
  if (recording) {
    stopRecording();
  }
  camera.stop();
  clear();
  controls.showCamera(camera);
}

// Clear the canvases.
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

// Age of the image in ms if a newer one is expected; else 0.
function age() {
  return shown === null || paused || hello === null ? 0 : performance.now() - shown.at;
}

function isStale() {
  return !ended && (!connection.ready || age() > (status?.message ? STALE_AFTER_MESSAGE : STALE_AFTER));
}

function allow() {
  controls.allow({ live: connection.ready, picture: shown !== null, paused, stale: isStale() });
}

// Show whether the displayed image is live.
function check() {
  const stale = shown !== null && isStale();
  element("views").dataset.stale = String(stale);
  showStatus(meter, status, shown, stale);
  allow();
  if (!connection.ready || status === null) {
    return; // the connection shows its own state
  }
  if (stale && !status.message) {
    const frozen = status.frame_age_s * 1000 > STALE_AFTER;
    const source = hello.mode === "camera" ? "Your camera" : "The source";
    const cause = frozen ? `${source} sends no images` : "The server or the network is too slow";
    const seconds = Math.max(STALE_AFTER / 1000, 5 * Math.floor(age() / 5000)); // so that the text does not change every second
    showState("bad", "No new image", `${cause}: the displayed image is more than ${seconds} s old.`);
  } else if (status.message) {
    showState("bad", stale ? "No image" : "Attention", status.message);
  } else {
    showState("good", paused ? "Paused" : "Connected");
  }
}

function startRecording() {
  if (shown === null || !connection.ready) {
    say("There is nothing to record yet.");
    return;
  }
  say(recorder.start(controls.view) ? "" : "This browser cannot record the page. The server still records video and poses.");
  connection.send({ type: "record", on: true });
  showRecording(true);
}

function stopRecording() {
  connection.send({ type: "record", on: false }); // the answer, "recorded", ends the video too
}

async function finishView() {
  const name = recordingName || fallbackName();
  recordingName = "";
  if (recorder.on) {
    const { video, ending } = await recorder.stop();
    downloads.addView(name, video, ending);
  }
}

// over: the source has ended; otherwise the displayed image is no longer live.
function lost(over) {
  ended = over;
  sender.close();
  meter.clear();
  status = null;
  unanswered = 0;
  controls.offerReplay(over && hello?.replay);
  showRecording(false);
  controls.resume();
  check();
  finishView();
}

setInterval(check, STATUS_EVERY);
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given !== null) {
  history.replaceState(null, "", location.pathname); // remove the token from the address
}
connection.open(given);
