// The WebSocket to the server. It reconnects with increasing delays; docs/reference/web-protocol.md describes the messages.

const FIRST_WAIT = 500; // ms before the second attempt; doubles with each attempt
const LONGEST_WAIT = 8000;
const PING_EVERY = 2000; // ms
const PINGS_KEPT = 10;
const FULL = 1013; // close code: the server has its maximum number of clients
const MISTAKE = 1008; // close code: the server received an invalid message
const ENDED = 1000; // close code: the video has ended

export class Connection {
  // handlers: state(kind, text), signIn(), message(object, jpeg or null), lost(ended)
  constructor(handlers) {
    this.handlers = handlers;
    this.socket = null;
    this.wait = FIRST_WAIT;
    this.pings = [];
    this.session = 0; // number of this connection
    setInterval(() => this.send({ type: "ping", time: performance.now() }), PING_EVERY);
  }

  get ready() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  // Requests access, with `token` if given, then opens the socket.
  async open(token = null) {
    this.handlers.state("wait", "Connecting");
    let answer;
    try {
      answer = await fetch("/session", token === null ? {} : { method: "POST", body: JSON.stringify({ token }) });
    } catch {
      this.retry("The server does not respond.");
      return;
    }
    if (!answer.ok) {
      this.handlers.state("bad", "Token required");
      this.handlers.signIn(token !== null);
      return;
    }
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/live`);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => this.receive(event.data);
    this.socket.onclose = (event) => this.closed(event);
  }

  closed(event) {
    this.session += 1;
    this.pings = [];
    this.handlers.lost(event.code === ENDED);
    if (event.code === ENDED) {
      this.handlers.state("done", "Ended", event.reason);
      return;
    }
    if (event.code === FULL || event.code === MISTAKE) {
      this.wait = LONGEST_WAIT;
    }
    this.retry(event.reason || "The connection to the server was lost.");
  }

  retry(why) {
    const seconds = Math.max(1, Math.round(this.wait / 1000));
    this.handlers.state("bad", "Not connected", `${why} Trying again in ${seconds} s.`);
    setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
  }

  receive(data) {
    if (typeof data !== "string") {
      const length = new DataView(data).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
      this.handlers.message(head, new Blob([new Uint8Array(data, 4 + length)], { type: "image/jpeg" }));
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "pong") {
      this.pong(message);
      return;
    }
    if (message.type === "hello") {
      this.wait = FIRST_WAIT;
      this.handlers.state("good", "Connected");
      this.send({ type: "ping", time: performance.now() });
    }
    this.handlers.message(message, null);
  }

  send(message) {
    if (this.ready) {
      this.socket.send(JSON.stringify(message));
    }
  }

  sendPicture(seconds, jpeg) {
    const head = new DataView(new ArrayBuffer(8));
    head.setFloat64(0, seconds, true);
    this.socket.send(new Blob([head.buffer, jpeg]));
  }

  // The fastest ping gives the best estimate of the server's clock minus ours.
  pong(message) {
    const now = performance.now();
    this.pings.push({ trip: now - message.time, ahead: 1000 * message.server - (now + message.time) / 2 });
    this.pings = this.pings.slice(-PINGS_KEPT);
  }

  // Converts `seconds` on the server's clock to ms on ours; null while the offset is unknown.
  localTime(seconds) {
    if (this.pings.length === 0) {
      return null;
    }
    const best = this.pings.reduce((a, b) => (b.trip < a.trip ? b : a));
    return 1000 * seconds - best.ahead;
  }
}
