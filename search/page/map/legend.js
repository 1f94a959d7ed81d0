// Sectors with their marks and how many companies each has on the map; a press shows one alone.

import { isolated, make, makeSvg } from "../shared/dom.js";
import { mark } from "./palette.js";

/** `only` gets the sector to show alone, or null for all. */
export function legend(points, only) {
  const counts = new Map();
  for (const { sector } of points) counts.set(sector ?? "", (counts.get(sector ?? "") ?? 0) + 1);
  const sectors = [...counts].sort(([, one], [, other]) => other - one);
  let chosen = null;
  const buttons = sectors.map(([sector, count]) => entry(sector, count, press));
  return make("ul", { class: "legend", "aria-label": "Sectors" }, ...buttons.map((button) => make("li", {}, button)));

  function press(sector) {
    chosen = chosen === sector ? null : sector;
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(sectors[place][0] === chosen)));
    only(chosen);
  }
}

function entry(sector, count, press) {
  const swatch = makeSvg("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }, mark(sector, 6));
  const traits = { type: "button", "aria-pressed": "false", onclick: () => press(sector) };
  const number = make("span", { class: "count" }, String(count));
  return make("button", traits, swatch, isolated(sector || "No sector"), number);
}
