// Records both canvases side by side as a video file in the browser.

const KINDS = [
  ["video/mp4;codecs=avc1.42E01F", "mp4"],
  ["video/webm;codecs=vp8", "webm"],
  ["video/webm", "webm"],
  ["video/mp4", "mp4"],
];
const FPS = 30;
const BITS_PER_SECOND = 4e6;
const TALLEST = 720; // px

export class Recorder {
  constructor(picture, scene) {
    this.picture = picture;
    this.scene = scene;
    this.canvas = document.createElement("canvas");
    this.recorder = null;
  }

  get on() {
    return this.recorder !== null;
  }

  // view: "picture", "scene" or "both". Returns false if this browser cannot record.
  start(view) {
    const kind = globalThis.MediaRecorder && KINDS.find(([type]) => MediaRecorder.isTypeSupported(type));
    if (!kind || !this.canvas.captureStream) {
      return false;
    }
    this.lay(view);
    this.draw();
    this.parts = [];
    const stream = this.canvas.captureStream(FPS);
    const recorder = new MediaRecorder(stream, { mimeType: kind[0], videoBitsPerSecond: BITS_PER_SECOND });
    recorder.ondataavailable = ({ data }) => this.parts.push(data);
    recorder.start(1000);
    this.recorder = recorder;
    this.ending = kind[1];
    return true;
  }

  // Positions of the canvases in the video. The size of the video is fixed, that of the canvases may change.
  lay(view) {
    const even = (value) => 2 * Math.round(value / 2);
    const { picture, scene } = this;
    const height = even(Math.min(TALLEST, view === "scene" ? scene.height : picture.height));
    const wide = (canvas) => even((height * canvas.width) / canvas.height);
    this.places = [];
    let x = 0;
    if (view !== "scene") {
      this.places.push([picture, x, wide(picture)]);
      x += wide(picture);
    }
    if (view !== "picture") {
      const width = view === "scene" ? wide(scene) : height;
      this.places.push([scene, x, width]);
      x += width;
    }
    this.canvas.width = x;
    this.canvas.height = height;
  }

  // Call after every new image.
  draw() {
    const context = this.canvas.getContext("2d");
    const { height } = this.canvas;
    this.places.forEach(([source, x, width]) => {
      const scale = Math.max(width / source.width, height / source.height); // fill, and crop the rest
      const [cutWidth, cutHeight] = [width / scale, height / scale];
      const [left, top] = [(source.width - cutWidth) / 2, (source.height - cutHeight) / 2];
      context.drawImage(source, left, top, cutWidth, cutHeight, x, 0, width, height);
    });
  }

  // The finished video and the ending of its name.
  async stop() {
    const { recorder } = this;
    this.recorder = null;
    const stopped = new Promise((resolve) => recorder.addEventListener("stop", resolve, { once: true }));
    recorder.stop();
    await stopped;
    recorder.stream.getTracks().forEach((track) => track.stop());
    return { video: new Blob(this.parts, { type: recorder.mimeType }), ending: this.ending };
  }
}
