// The camera image with its people: a result drawn on the image it belongs to.

import { crown, faceOpacity, isFace } from "./head.js";
import { ink, mixed, personColour, pill, rimColour } from "./paint.js";

const HIDDEN_BELOW = 0.12; // joints with lower scores are not drawn,
const FULL_FROM = 0.65; // joints with higher scores are opaque
const BADGE = 0.04; // of the person's height

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.mirrored = false;
  }

  // picture: what drawImage takes, with width and height. hello: the server's skeleton and colours.
  draw(picture, people, hello) {
    const { canvas, context } = this;
    if (canvas.width !== picture.width || canvas.height !== picture.height) {
      canvas.width = picture.width;
      canvas.height = picture.height;
    }
    context.setTransform(...(this.mirrored ? [-1, 0, 0, 1, canvas.width, 0] : [1, 0, 0, 1, 0, 0]));
    context.drawImage(picture, 0, 0);
    const nearestLast = [...people].sort((a, b) => a.box[3] - b.box[3]);
    nearestLast.forEach((person) => this.drawSkeleton(person, hello));
    context.setTransform(1, 0, 0, 1, 0, 0); // names are never mirrored
    nearestLast.forEach((person) => this.drawName(person, hello));
  }

  clear() {
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  drawSkeleton(person, hello) {
    const { context } = this;
    const points = person.keypoints;
    const face = faceOpacity(points, hello.joints);
    const clear = points.map(([x, y, score], joint) => {
      const share = Math.min(1, Math.max(0, (score - HIDDEN_BELOW) / (FULL_FROM - HIDDEN_BELOW)));
      return x === null || y === null ? 0 : share * (isFace(hello.joints[joint].name) ? face : 1);
    });
    const outline = ink(rimColour(hello.colours, person.id));
    const [, top, , bottom] = person.box;
    const most = 0.009 * Math.max(this.canvas.width, this.canvas.height);
    const width = Math.max(1.5, Math.min(most, 0.016 * (bottom - top)));
    context.lineCap = "round";
    for (const rim of [true, false]) {
      hello.edges.forEach(({ ends: [a, b], side, thick }) => {
        context.globalAlpha = Math.min(clear[a], clear[b]);
        if (context.globalAlpha > 0) {
          context.lineWidth = thick * width + (rim ? Math.min(1, 2 * thick) * (0.7 * width + 1) : 0);
          context.strokeStyle = rim ? outline : ink(hello.colours[side]);
          context.beginPath();
          context.moveTo(points[a][0], points[a][1]);
          context.lineTo(points[b][0], points[b][1]);
          context.stroke();
        }
      });
    }
    hello.joints.forEach(({ side, thick }, joint) => {
      context.globalAlpha = clear[joint];
      if (clear[joint] > 0) {
        context.fillStyle = ink(mixed(hello.colours[side], [250, 250, 250], 0.35));
        context.beginPath();
        context.arc(points[joint][0], points[joint][1], thick * width, 0, 2 * Math.PI);
        context.fill();
      }
    });
    context.globalAlpha = 1;
  }

  drawName(person, hello) {
    const { width, height } = this.canvas;
    const most = 0.04 * Math.max(width, height);
    const size = Math.max(11, Math.min(most, BADGE * (person.box[3] - person.box[1])));
    const { place, away } = crown(person, hello.joints);
    const [x, y] = place.map((value, axis) => value + 0.8 * size * away[axis]);
    const inside = (value, length) => Math.min(Math.max(value, size), length - size);
    const { repetitions } = person;
    const name = repetitions ? `${person.id}  ${repetitions.movement} ${repetitions.count}` : String(person.id);
    pill(this.context, name, inside(this.mirrored ? width - x : x, width), inside(y, height), size,
      personColour(hello.colours, person.id));
  }
}
