// The 3D view of the live page, with trails of the people and the camera.

import { ink, personColour } from "./paint.js";
import { Scene } from "./scene.js";

const TRAIL = 2; // s

// The path of each person over the last seconds, on the stage.
export function trails(clip, frame) {
  const found = new Map();
  for (let at = clip.frameAt(Math.max(0, clip.times[frame] - TRAIL)); at <= frame; at += 3) {
    clip.at(at)?.forEach(({ id, pelvis }) => pelvis && found.set(id, [...(found.get(id) ?? []), pelvis]));
  }
  return [...found].map(([id, points]) => ({ id, points }));
}

export class StudioScene extends Scene {
  constructor(canvas) {
    super(canvas);
    this.trails = [];
    this.cameraHeight = null;
  }

  drawFloor(camera) {
    super.drawFloor(camera);
    (this.trails ?? []).forEach(({ id, points }) => {
      this.trace(camera, points.map(([x, y]) => [x, y, 0.005]));
      this.context.strokeStyle = ink(personColour(this.hello.colours, id));
      this.context.lineWidth = Math.max(1.5, this.canvas.height / 300);
      this.context.stroke();
    });
    if (this.cameraHeight) {
      this.drawCamera(camera);
    }
  }

  // A small pyramid at the camera, which looks along y, with a line to the floor.
  drawCamera(camera) {
    const [high, size] = [this.cameraHeight, 0.16];
    const eye = [0, 0, high];
    const corners = [[-1, -0.7], [1, -0.7], [1, 0.7], [-1, 0.7]].map(([x, z]) => [size * x, 2 * size, high + size * z]);
    this.context.strokeStyle = ink(this.colours.grid);
    this.context.lineWidth = Math.max(1, this.canvas.height / 400);
    [[eye, [0, 0, 0]], ...corners.map((corner) => [eye, corner])].forEach((line) => {
      this.trace(camera, line);
      this.context.stroke();
    });
    this.trace(camera, corners, true);
    this.context.stroke();
  }
}
