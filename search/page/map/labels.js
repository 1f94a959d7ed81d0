// Names beside their marks, as many as fit without touching one another or leaving the frame.

const LETTER = 6.6; // pixels a letter, about; a label that is a little too wide harms nobody
const HEIGHT = 16;
const GAP = 4;
const LONGEST = 24;

/** Places for names: `points` are {x, y, name, room} on the screen, the most important first; `room` is for the mark. */
export function placed(points, size, most) {
  const taken = points.slice(0, 1).map(around); // no name lies across the one that matters most
  const labels = [];
  for (const point of points) {
    if (labels.length >= most) break;
    const text = shortened(point.name);
    const box = [right, left].map((side) => side(point, text)).find((one) => fits(one, size, taken));
    if (!box) continue;
    taken.push(box);
    labels.push({ point, text, x: box.textX, y: point.y + 4, anchor: box.anchor });
  }
  return labels;
}

function shortened(name) {
  const letters = Array.from(name);
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : name;
}

function right(point, text) {
  const width = Array.from(text).length * LETTER;
  const from = point.x + point.room + GAP;
  return { ...rows(point), left: from, right: from + width, textX: from, anchor: "start" };
}

function left(point, text) {
  const width = Array.from(text).length * LETTER;
  const to = point.x - point.room - GAP;
  return { ...rows(point), left: to - width, right: to, textX: to, anchor: "end" };
}

const around = ({ x, y, room }) => ({ left: x - room, right: x + room, top: y - room, bottom: y + room });

const rows = ({ y }) => ({ top: y - HEIGHT / 2, bottom: y + HEIGHT / 2 });

function fits(box, { width, height }, taken) {
  if (box.left < 0 || box.right > width || box.top < 0 || box.bottom > height) return false;
  return taken.every(
    (one) => box.right < one.left || box.left > one.right || box.bottom < one.top || box.top > one.bottom,
  );
}
