// Missing and repaired frames of a person in a report: lanes under the time line, and links to them.

const KINDS = [
  { name: "missing", title: "Missing", tone: "--bad", lane: [0, 5] },
  { name: "filled", title: "Missing, interpolated", tone: "--filled", lane: [0, 5] },
  { name: "legs", title: "Legs: left and right swapped", tone: "--legs", lane: [7, 3] },
  { name: "arms", title: "Arms: left and right swapped", tone: "--arms", lane: [11, 3] },
  ...["left leg", "right leg", "left arm", "right arm"].map((limb) => ({
    name: `inconsistent_${limb.replace(" ", "_")}`, title: `2D contradicts bones: ${limb}`, tone: "--bad", lane: [15, 3],
  })),
];
const HEIGHT = 18; // px of all lanes
const NAMED = 12; // maximum links per kind
const NARROWEST = 2; // px

const second = (value) => `${value.toFixed(2)} s`;
const frames = (count) => `${count} ${count === 1 ? "frame" : "frames"}`;

// times: of the page's frames. seek: takes seconds.
export class Marks {
  constructor(canvas, facts, times, seek) {
    Object.assign(this, { canvas, facts, seek, start: times[0], end: times.at(-1), person: null });
    this.from = (person) => [times[person.first], times[person.first + person.count - 1]];
  }

  choose(person) {
    this.person = person;
    this.draw();
    const [first, last] = this.from(person);
    const rows = [this.fact("Seen", null, `${second(first)} to ${second(last)}, ${frames(person.frames)}`)];
    if (person.doubtful) {
      rows.push(this.fact("Doubtful", null, "rarely visible or over another person; possibly a false detection"));
    }
    KINDS.forEach(({ name, title, tone }) => {
      const { frames: count, spans } = person.marks[name];
      const jumps = spans.slice(0, NAMED).map((span) => this.jump(span));
      const more = spans.length > NAMED ? [`and ${spans.length - NAMED} more`] : [];
      rows.push(this.fact(title, tone, count ? frames(count) : "no frame", ...jumps, ...more));
    });
    rows.push(this.fact("Joints without 2D, estimated", null, `${(100 * person.unseen()).toFixed(1)} % of all`));
    this.facts.replaceChildren(...rows);
    const said = KINDS.map(({ name, title }) => `${title}: ${frames(person.marks[name].frames)}`);
    this.canvas.setAttribute("aria-label", said.join("; "));
  }

  fact(title, tone, ...parts) {
    const row = document.createElement("div");
    const [head, body] = ["dt", "dd"].map((kind) => document.createElement(kind));
    head.textContent = title;
    if (tone !== null) {
      head.style.setProperty("--line-colour", `var(${tone})`);
      head.className = "marked";
    }
    body.append(...parts);
    row.append(head, body);
    return row;
  }

  jump([first, last]) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "jump" });
    button.textContent = `${first.toFixed(2)}–${second(last)}`;
    button.addEventListener("click", () => this.seek(first));
    return button;
  }

  draw() {
    if (this.person === null) {
      return;
    }
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    Object.assign(this.canvas, { width, height: HEIGHT * ratio });
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.body);
    const bar = (first, last, [top, height], tone) => {
      const length = Math.max(this.end - this.start, 1e-9);
      const [from, to] = [first, last].map((time) => (width * (time - this.start)) / length);
      const wide = Math.max(to - from, NARROWEST * ratio);
      context.fillStyle = style.getPropertyValue(tone).trim();
      context.fillRect(Math.min(from, width - wide), top * ratio, wide, height * ratio);
    };
    bar(...this.from(this.person), KINDS[0].lane, "--present");
    KINDS.forEach(({ name, lane, tone }) => {
      this.person.marks[name].spans.forEach(([first, last]) => bar(first, last, lane, tone));
    });
  }
}
