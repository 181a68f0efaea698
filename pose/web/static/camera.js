// The browser's own camera, and why there is none.

// As the camera makes them: a browser that resizes pictures may cut them.
const WANTED = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 }, resizeMode: { ideal: "none" } };
const REASONS = {
  NotAllowedError: "The camera was refused. Allow it for this page (the camera sign beside the address), then press Start camera.",
  NotFoundError: "No camera was found. Connect one, then press Start camera.",
  NotReadableError: "The camera is busy: another program or tab uses it. Close that one, then press Start camera.",
  OverconstrainedError: "That camera is not there any more. Choose another one.",
  AbortError: "The camera stopped before its first picture. Press Start camera to try again.",
};
const INSECURE = "Browsers give a camera only to https pages and to localhost. "
  + "Open this page as https (--cert and --key) or through a tunnel to localhost.";

export function explain(error) {
  return REASONS[error.name] ?? `The camera cannot be used: ${error.message || error.name}.`;
}

export class Camera {
  // onFrame(video, ms): a new picture is in `video`, captured at `ms` on performance.now's clock.
  // onEnd(): the camera was unplugged, or taken away by the system.
  constructor(onFrame, onEnd) {
    this.onFrame = onFrame;
    this.onEnd = onEnd;
    this.stream = null;
    this.video = document.createElement("video");
    this.video.muted = true;
    this.video.playsInline = true;
  }

  get on() {
    return this.stream !== null;
  }

  // Opens the camera, the one called `device` where that is given. Throws an Error whose message is for people.
  async start(device = "") {
    if (!navigator.mediaDevices?.getUserMedia) {
      throw new Error(INSECURE);
    }
    this.stop();
    const video = device ? { ...WANTED, deviceId: { exact: device } } : { ...WANTED, facingMode: "user" };
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video, audio: false });
    } catch (error) {
      throw new Error(explain(error), { cause: error });
    }
    this.stream = stream;
    stream.getVideoTracks()[0].addEventListener("ended", () => {
      if (this.stream === stream) {
        this.stop();
        this.onEnd();
      }
    });
    this.video.srcObject = stream;
    await this.video.play();
    this.watch(stream);
  }

  stop() {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.stream = null;
    this.video.srcObject = null;
  }

  watch(stream) {
    const next = (now, facts) => {
      if (this.stream === stream) {
        this.onFrame(this.video, facts?.captureTime ?? now);
        this.watch(stream);
      }
    };
    if (this.video.requestVideoFrameCallback) {
      this.video.requestVideoFrameCallback(next);
    } else {
      setTimeout(() => next(performance.now()), 33);
    }
  }

  async list() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    return devices.filter((device) => device.kind === "videoinput");
  }

  get device() {
    return this.stream?.getVideoTracks()[0].getSettings().deviceId ?? "";
  }
}
