// Sends the browser's images to the server. The number of unanswered images is limited; meanwhile newer ones replace
// unsent ones, so a slow server or network drops images and does not increase the latency.

const GIVEN_UP = 3000; // ms without an answer after which an image counts as lost
const QUALITY = 0.8; // of the JPEG

export class Sender {
  constructor(connection) {
    this.connection = connection;
    this.canvas = document.createElement("canvas");
    this.underWay = new Map(); // number -> { picture, captured }
    this.encoding = false;
    this.next = 0;
    this.last = 0;
    this.session = null; // set while the server accepts images; a new object for each connection and after each reset
  }

  // Sends the image of `video`, scaled to at most `side` px, unless `most` images are unanswered. captured: ms.
  async offer(video, captured, { side, most }) {
    this.giveUp();
    const { session } = this;
    const full = this.encoding || this.underWay.size >= most;
    if (full || session === null || !this.connection.ready || captured <= this.last || !video.videoWidth) {
      return;
    }
    this.encoding = true;
    this.last = captured;
    try {
      const scale = Math.min(1, side / Math.max(video.videoWidth, video.videoHeight));
      this.canvas.width = Math.round(scale * video.videoWidth);
      this.canvas.height = Math.round(scale * video.videoHeight);
      this.canvas.getContext("2d").drawImage(video, 0, 0, this.canvas.width, this.canvas.height);
      const encoded = new Promise((resolve) => this.canvas.toBlob(resolve, "image/jpeg", QUALITY));
      const picture = await createImageBitmap(this.canvas);
      const jpeg = await encoded;
      if (session === this.session && this.connection.ready && jpeg !== null) {
        this.underWay.set(this.next, { picture, captured, since: performance.now() });
        this.connection.sendPicture(captured / 1000, jpeg);
        this.next += 1;
      } else {
        picture.close();
      }
    } finally {
      this.encoding = false;
    }
  }

  // The answered image; null if it counts as lost. Older ones will not be answered.
  take(number) {
    const found = this.underWay.get(number) ?? null;
    this.underWay.delete(number);
    for (const [older, { picture }] of this.underWay) {
      if (older < number) {
        picture.close();
        this.underWay.delete(older);
      }
    }
    return found;
  }

  // Ignore answers to the unanswered images.
  forget() {
    this.underWay.forEach(({ picture }) => picture.close());
    this.underWay.clear();
    if (this.session !== null) {
      this.session = {}; // so that an image that is being encoded is not sent later
    }
  }

  // After the server's hello, both sides count the images of this connection from 0.
  open() {
    this.forget();
    this.next = 0;
    this.session = {};
  }

  close() {
    this.forget();
    this.session = null;
  }

  giveUp() {
    const now = performance.now();
    for (const [number, { picture, since }] of this.underWay) {
      if (now - since > GIVEN_UP) {
        picture.close();
        this.underWay.delete(number);
      }
    }
  }
}
