// A colour and a shape for each sector, the same on every map of a visit; shapes for those who cannot tell the colours.

import { makeSvg } from "../shared/dom.js";

const COLOURS = 10;
const SHAPES = [
  "M 0 -1 A 1 1 0 1 1 0 1 A 1 1 0 1 1 0 -1 Z", // circle
  "M -0.9 -0.9 H 0.9 V 0.9 H -0.9 Z", // square
  "M 0 -1.25 L 1.25 0 L 0 1.25 L -1.25 0 Z", // diamond
  "M 0 -1.2 L 1.15 0.85 L -1.15 0.85 Z", // triangle
];

const numbers = new Map();

/** A mark of some radius in the sector's colour and shape; no sector is a grey circle. */
export function mark(sector, radius) {
  const number = numberOf(sector);
  const colour = number === null ? "none" : number % COLOURS;
  const shape = SHAPES[(number ?? 0) % SHAPES.length];
  return makeSvg("path", { class: `mark colour-${colour}`, d: shape, transform: `scale(${radius})` });
}

function numberOf(sector) {
  if (!sector) return null;
  if (!numbers.has(sector)) numbers.set(sector, numbers.size);
  return numbers.get(sector);
}
