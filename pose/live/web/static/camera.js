// Access to the browser's camera, and messages for its errors.

// The camera's native size: a browser that resizes images may crop them.
const WANTED = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 }, resizeMode: { ideal: "none" } };
const REASONS = {
  NotAllowedError: "Access to the camera was denied. Allow it for this page (the camera icon beside the address), then press Start camera.",
  NotFoundError: "No camera was found. Connect one, then press Start camera.",
  NotReadableError: "The camera is in use by another program or tab. Close it, then press Start camera.",
  OverconstrainedError: "That camera is no longer available. Choose another one.",
  AbortError: "The camera stopped before its first image. Press Start camera to try again.",
};
const INSECURE = "Browsers allow camera access only for https pages and localhost. "
  + "Serve this page over https (--cert and --key), or open it through a tunnel to localhost.";

export function explain(error) {
  return REASONS[error.name] ?? `The camera cannot be used: ${error.message || error.name}.`;
}

export class Camera {
  // onFrame(video, ms): `video` has a new image, captured at `ms` on the clock of performance.now.
  // onEnd(): the camera was unplugged, or is no longer available to this page.
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

  // Opens the camera `device`, or the default one. Throws an Error with a message for users.
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
