// The correction tools: each makes edits from what is chosen on the page.

const element = (id) => document.getElementById(id);
const value = (id) => element(id).value;

function metres(id, least, most) {
  const given = Number(value(id));
  if (!value(id) || !(given >= least && given <= most)) {
    throw new Error(`Give a number from ${least} to ${most} m.`);
  }
  return given;
}

// The tools by name: a function of the state of the page that returns edits, and what they do in words.
export const TOOLS = {
  rename: ({ person }) => [[{ edit: "rename", person, name: value("name").trim() }], "New name"],
  merge: async ({ person, other }) => [[{ edit: "merge", person, into: await other() }], "Two tracks merged"],
  swap: async ({ here, otherHere }) => [[{ edit: "swap", person: here(), other: otherHere() }], "Ids swapped"],
  split: ({ here }) => [[{ edit: "split", person: here() }], "A new person from here on"],
  delete: ({ person }) => [[{ edit: "delete", person }], "Person deleted"],
  "keep-person": ({ person }) => [[{ edit: "keep", person }], "Person kept in any case"],
  hidden: ({ start, until }) => [[{ edit: "hidden", person: start(), limb: value("limb"), until }], "Limb not visible"],
  sides: ({ start, until, joints }) => {
    const [left, right] = joints(value("limbs") === "arms" ? "elbow" : "knee");
    // The joints as shown are the wrong way round.
    return [[{ edit: "sides", person: start(), limbs: value("limbs"), until, left: right, right: left }], "Left and right swapped"];
  },
  height: ({ person }) => [[{ edit: "height", person, metres: metres("metres", 0.4, 2.75) }], "Height"],
  floor: ({ here }) => [[{ edit: "floor", person: here() }], "Stands on the floor"],
  support: ({ here }) => [[{ edit: "floor", person: here(), height: metres("support", 0, 5) }], "Stands on something"],
  "contact-on": ({ start, until }) => [[{ edit: "contact", person: start(), foot: value("foot"), on: true, until }], "Foot on the ground"],
  "contact-off": ({ start, until }) => [[{ edit: "contact", person: start(), foot: value("foot"), on: false, until }], "Foot in the air"],
};

// The state that a tool needs, of a studio page at its current frame. Raises an error in words where it is missing.
export async function stateOf({ clip, frame, person, range: [from, last] }) {
  const place = (at, id) => {
    const found = clip.placeAt(at, id);
    if (!found) {
      throw new Error(at === frame ? "This person is not seen in this frame." : "This person is not seen at the start of the range.");
    }
    return found;
  };
  if (person === null) {
    throw new Error("No person was found in this clip.");
  }
  const given = await clip.place(person, frame);
  if (given === null) {
    throw new Error("This person is not seen in 2D.");
  }
  const begin = from ?? frame;
  await clip.load(begin);
  const other = Number(value("other"));
  const needOther = () => {
    if (!value("other")) {
      throw new Error("Choose the other person.");
    }
    return other;
  };
  return {
    person: given,
    here: () => place(frame, person),
    other: async () => clip.place(needOther(), frame),
    otherHere: () => place(frame, needOther()),
    get until() {
      if (last === null) {
        throw new Error("Set a range first: From here, To here.");
      }
      return clip.ownTime(last);
    },
    start: () => place(begin, person),
    joints: (name) => {
      const row = clip.at(begin).find(({ id }) => id === person);
      return ["left", "right"].map((side) => {
        const point = row.points[clip.meta.skeleton.names.indexOf(`${side}_${name}`)];
        if (!point) {
          throw new Error(`The ${side} ${name} is not seen at the start of the range.`);
        }
        return point;
      });
    },
  };
}
