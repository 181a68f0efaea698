// Frames a second and latency over the last seconds.

const WINDOW = 5000; // ms
const FEWEST = 5; // minimum samples for a percentile

export class Meter {
  constructor() {
    this.samples = []; // [drawn, latency], ms; latency is null where it is not known
  }

  add(drawn, latency) {
    this.samples.push([drawn, latency]);
    while (this.samples[0][0] < drawn - WINDOW) {
      this.samples.shift();
    }
  }

  clear() {
    this.samples = [];
  }

  fps(now) {
    const recent = this.samples.filter(([drawn]) => drawn > now - WINDOW);
    return recent.length < 2 ? 0 : (1000 * (recent.length - 1)) / Math.max(now - recent[0][0], 1);
  }

  // Quantile `share` of the latency of the recent images, ms; null with too few samples.
  latency(share, now) {
    const recent = this.samples.filter(([drawn]) => drawn > now - WINDOW);
    const known = recent.map(([, latency]) => latency).filter((latency) => latency !== null);
    if (known.length < FEWEST) {
      return null;
    }
    known.sort((a, b) => a - b);
    return known[Math.min(known.length - 1, Math.floor(share * known.length))];
  }
}
