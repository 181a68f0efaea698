// Drawing functions of both canvases.

export function ink([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

export function mixed(colour, other, share) {
  return colour.map((value, channel) => Math.round(value + share * (other[channel] - value)));
}

export function personColour(colours, id) {
  return colours.people[id % colours.people.length];
}

// Outline of a person's limbs: the person's colour, darker.
export function rimColour(colours, id) {
  return mixed(personColour(colours, id), [16, 18, 22], 0.25);
}

export function parsed(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

// A name on a rounded patch of `colour`, its centre at (x, y).
export function pill(context, text, x, y, size, colour) {
  const [red, green, blue] = colour;
  const dark = 0.299 * red + 0.587 * green + 0.114 * blue > 130;
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const width = Math.max(1.3 * size, context.measureText(text).width + 0.8 * size);
  context.fillStyle = ink(colour);
  context.beginPath();
  context.roundRect(x - width / 2, y - 0.68 * size, width, 1.36 * size, 0.45 * size);
  context.fill();
  context.fillStyle = dark ? "#101216" : "#fafafa";
  context.fillText(text, x, y + 0.05 * size);
}
