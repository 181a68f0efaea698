// Bodies of people: a skinned mesh, posed by rotations of its bones, drawn as shaded triangles, far ones first.

import { ink, mixed, personColour } from "./paint.js";

const LIGHT = [-0.451, -0.551, 0.702]; // unit vector to the light on the stage: left, front, above
const AMBIENT = 0.35; // light on a surface parallel to the rays
const SHADES = 24;
const [DARK, PAPER] = [[16, 18, 22], [250, 250, 250]];
const PLAIN = 0.7; // light at which a surface has the person's colour
const [DARKEST, LIGHTEST] = [0.6, 0.55];

// Product of rotations (w, x, y, z): `b`, followed by `a`.
function times([aw, ax, ay, az], [bw, bx, by, bz]) {
  return [
    aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by,
    aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw,
  ];
}

function turned([w, x, y, z], [a, b, c]) {
  const [tx, ty, tz] = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
  return [a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx];
}

export function bytes(text) {
  const letters = atob(text); // a loop takes a tenth of the time of Uint8Array.from
  const values = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) {
    values[at] = letters.charCodeAt(at);
  }
  return values;
}

// The mesh that all bodies share, decoded from the server's message.
export function readMesh({ triangles, bones, weights, parents, unit, turn, moving }) {
  return {
    triangles: new Uint16Array(bytes(triangles).buffer), bones: bytes(bones), parents, unit, turn, moving,
    weights: Float32Array.from(new Uint16Array(bytes(weights).buffer), (share) => share / 65535),
  };
}

export class Body {
  // numbers: the rest pose in units of the mesh, heads of the bones before vertices.
  static of(mesh, numbers) {
    const rest = Float32Array.from(numbers, (number) => number * mesh.unit);
    const heads = 3 * mesh.parents.length;
    return new Body(mesh, rest.subarray(0, heads), rest.subarray(heads));
  }

  // mesh: triangles, bones and weights of four bones a vertex, parents. heads, vertices: of the rest pose, m.
  constructor(mesh, heads, vertices) {
    Object.assign(this, { mesh, heads, vertices });
    this.places = new Float32Array(vertices.length);
  }

  head(bone) {
    return [this.heads[3 * bone], this.heads[3 * bone + 1], this.heads[3 * bone + 2]];
  }

  // row: position of the first bone in mm, then x, y, z of the rotations of the moving bones.
  poseRow(row, moving) {
    const { turn } = this.mesh;
    const turns = [];
    moving.forEach((bone, at) => {
      const [x, y, z] = [0, 1, 2].map((axis) => row[3 + 3 * at + axis] / turn);
      turns[bone] = [Math.sqrt(Math.max(0, 1 - x * x - y * y - z * z)), x, y, z];
    });
    this.pose([0, 1, 2].map((axis) => row[axis] / 1000), turns);
  }

  // Vertices on the stage (x right, y away, z up), for the position of the first bone and rotations in the parents' frames.
  pose(root, turns) {
    const { bones, weights, parents } = this.mesh;
    const [whole, heads, maps] = [[], [], []];
    parents.forEach((parent, bone) => {
      const rest = this.head(bone);
      if (parent < 0) {
        whole.push(turns[bone]);
        heads.push(root);
      } else {
        const from = this.head(parent);
        const way = turned(whole[parent], rest.map((value, axis) => value - from[axis]));
        whole.push(turns[bone] ? times(whole[parent], turns[bone]) : whole[parent]);
        heads.push(heads[parent].map((value, axis) => value + way[axis]));
      }
      const columns = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((axis) => turned(whole[bone], axis));
      const start = turned(whole[bone], rest);
      maps.push([...columns.flat(), ...heads[bone].map((value, axis) => value - start[axis])]);
    });
    const { vertices, places } = this;
    for (let vertex = 0; vertex < vertices.length / 3; vertex += 1) {
      const [x, y, z] = [vertices[3 * vertex], vertices[3 * vertex + 1], vertices[3 * vertex + 2]];
      let [px, py, pz] = [0, 0, 0];
      for (let slot = 4 * vertex; slot < 4 * vertex + 4; slot += 1) {
        const share = weights[slot];
        if (share > 0) {
          const map = maps[bones[slot]];
          px += share * (map[0] * x + map[3] * y + map[6] * z + map[9]);
          py += share * (map[1] * x + map[4] * y + map[7] * z + map[10]);
          pz += share * (map[2] * x + map[5] * y + map[8] * z + map[11]);
        }
      }
      places[3 * vertex] = px;
      places[3 * vertex + 1] = -pz;
      places[3 * vertex + 2] = py;
    }
    return places;
  }
}

// people: with `id` and a posed `body`. project: a point on the stage to [x, y, px a metre], or null.
export function drawBodies(context, people, project, colours, mirrored) {
  const visible = people.flatMap(({ id, body }) => {
    const { places, mesh: { triangles } } = body;
    const seen = [];
    for (let vertex = 0; vertex < places.length; vertex += 3) {
      seen.push(project([places[vertex], places[vertex + 1], places[vertex + 2]]));
    }
    const paints = palette(personColour(colours, id));
    const shown = [];
    for (let corner = 0; corner < triangles.length; corner += 3) {
      const [a, b, c] = [triangles[corner], triangles[corner + 1], triangles[corner + 2]];
      const [pa, pb, pc] = [seen[a], seen[b], seen[c]];
      if (pa === null || pb === null || pc === null) {
        continue;
      }
      const facing = (pb[0] - pa[0]) * (pc[1] - pa[1]) - (pb[1] - pa[1]) * (pc[0] - pa[0]);
      if (mirrored ? facing > 0 : facing < 0) {
        const paint = paints[Math.round((SHADES - 1) * light(places, 3 * a, 3 * b, 3 * c))];
        shown.push({ pa, pb, pc, scale: pa[2] + pb[2] + pc[2], paint });
      }
    }
    return shown;
  });
  visible.sort((one, other) => one.scale - other.scale);
  context.lineWidth = 1;
  context.lineJoin = "round";
  visible.forEach(({ pa, pb, pc, paint }) => {
    context.fillStyle = paint;
    context.strokeStyle = paint; // closes the seams between triangles
    context.beginPath();
    context.moveTo(pa[0], pa[1]);
    context.lineTo(pb[0], pb[1]);
    context.lineTo(pc[0], pc[1]);
    context.closePath();
    context.fill();
    context.stroke();
  });
}

// Light on a triangle whose corners start at a, b and c, 0 to 1.
function light(places, a, b, c) {
  const [ux, uy, uz] = [places[b] - places[a], places[b + 1] - places[a + 1], places[b + 2] - places[a + 2]];
  const [vx, vy, vz] = [places[c] - places[a], places[c + 1] - places[a + 1], places[c + 2] - places[a + 2]];
  const [x, y, z] = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
  const size = Math.sqrt(x * x + y * y + z * z) || 1;
  const cosine = (x * LIGHT[0] + y * LIGHT[1] + z * LIGHT[2]) / size;
  return Math.min(1, Math.max(0, AMBIENT + (1 - AMBIENT) * cosine));
}

function palette(colour) {
  return Array.from({ length: SHADES }, (_, shade) => ink(shaded(colour, shade / (SHADES - 1))));
}

function shaded(colour, share) {
  return share < PLAIN
    ? mixed(colour, DARK, DARKEST * (1 - share / PLAIN))
    : mixed(colour, PAPER, (LIGHTEST * (share - PLAIN)) / (1 - PLAIN));
}
