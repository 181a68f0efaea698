// Texts and numbers of the page.

const shownMessages = { page: "", connection: "" };
const troubles = { page: true, connection: true };

export function element(id) {
  return document.getElementById(id);
}

// Show a message for the user; "" clears it. trouble: it is a problem.
export function say(text, from = "page", trouble = true) {
  shownMessages[from] = text;
  troubles[from] = trouble;
  const message = element("message");
  const whole = Object.values(shownMessages).filter(Boolean).join(" ");
  if (message.textContent !== whole) {
    message.textContent = whole;
  }
  message.hidden = whole === "";
  const wrong = Object.keys(shownMessages).some((source) => shownMessages[source] !== "" && troubles[source]);
  message.dataset.kind = wrong ? "trouble" : "note";
}

// kind: "good", "wait", "done" or "bad". text: one or two words. detail: explanation or remedy.
export function showState(kind, text, detail = "") {
  const connection = element("connection");
  connection.dataset.state = kind;
  if (connection.textContent !== text) {
    connection.textContent = text;
  }
  say(detail, "connection", kind !== "done");
}

// Show the dialog for the token. wrong: the previous token was wrong.
export function askToken(wrong, answer) {
  const dialog = element("sign-in");
  element("token-wrong").hidden = !wrong;
  element("token").value = "";
  element("sign-in-form").onsubmit = (event) => {
    event.preventDefault();
    dialog.close();
    answer(element("token").value);
  };
  dialog.showModal();
}

function put(id, text) {
  const place = element(id);
  if (place.textContent !== text) {
    place.textContent = text;
  }
}

const NONE = "\u2013";

// status: last status of the server. shown: content of the canvases. Both are null at first. stale: `shown` is outdated.
export function showStatus(meter, status, shown, stale) {
  const now = performance.now();
  const ms = (value) => (value === null ? NONE : `${Math.round(value)} ms`);
  put("people", shown === null || stale ? NONE : String(shown.people.length));
  put("fps", stale || meter.fps(now) === 0 ? NONE : meter.fps(now).toFixed(1));
  put("latency", stale ? NONE : ms(meter.latency(0.5, now)));
  put("latency-p95", stale ? NONE : ms(meter.latency(0.95, now)));
  const ahead = status !== null && status.ahead_ms > 0; // one of the two at most
  put("delay-name", ahead ? "Predicted by" : "Look-ahead");
  put("delay", status === null ? NONE : ms(ahead ? status.ahead_ms : status.lifter_delay_ms));
  put("device", status === null ? NONE : status.device);
  element("calibration-entry").hidden = !status?.cameras;
  put("calibration", status?.cameras || NONE);
  put("world", status === null || !status.world ? NONE : status.world.replace(/^gravity /, ""));
}
