// Filters with counts: any of the values within a field, all of the fields that have some.

import { facets } from "../api.js";
import { byId, isolated, make, unseen } from "../shared/dom.js";
import { FIELDS, current, go } from "../state.js";

const TITLES = { sector: "Sector", industry: "Industry", country: "Country", tags: "Tags" };
const FEW = 6;
const AGAIN_MS = 5_000;

const opened = new Set(); // fields of which all values are shown
let asked = new AbortController();

export async function showFacets(state) {
  asked.abort();
  const { signal } = (asked = new AbortController());
  const box = byId("filters");
  try {
    const counts = await count(state.filters, signal);
    if (!signal.aborted) keepFocus(box, () => draw(box, counts, state));
  } catch {
    if (signal.aborted) return;
    box.replaceChildren(make("p", { class: "quiet" }, "Filters come back with the server."));
    setTimeout(() => signal.aborted || showFacets(state), AGAIN_MS);
  }
}

/** A field with chosen values is counted without them, or its other values could not be added. */
async function count(filters, signal) {
  const chosen = FIELDS.filter((field) => filters[field].length);
  const all = facets(filters, signal);
  const others = chosen.map(async (field) => [field, (await facets({ ...filters, [field]: [] }, signal))[field]]);
  return { ...(await all), ...Object.fromEntries(await Promise.all(others)) };
}

function draw(box, counts, state) {
  const chosen = FIELDS.reduce((sum, field) => sum + state.filters[field].length, 0);
  const clear = make("button", { type: "button", class: "link", "data-focus": "clear", onclick: clearFilters });
  clear.append(`Clear ${chosen === 1 ? "1 filter" : `${chosen} filters`}`);
  const groups = FIELDS.map((field) => group(field, counts[field] ?? [], state.filters[field])).filter(Boolean);
  const none = make("p", { class: "quiet" }, "The companies here have nothing to filter by.");
  box.replaceChildren(...(chosen ? [clear] : []), ...(groups.length ? groups : [none]));
  const toggle = byId("filters-toggle");
  toggle.dataset.chosen = chosen;
  nameToggle(toggle);
}

function group(field, values, chosen) {
  const known = new Set(values.map(({ value }) => value));
  const lost = chosen.filter((value) => !known.has(value)).map((value) => ({ value, count: 0 }));
  // What is chosen stays in sight, however rare it is.
  const sorted = [...values.filter(({ value }) => chosen.includes(value)), ...lost];
  sorted.push(...values.filter(({ value }) => value && !chosen.includes(value)));
  if (!sorted.length) return null;
  const shown = opened.has(field) ? sorted : sorted.slice(0, Math.max(FEW, chosen.length));
  const boxes = shown.map(({ value, count }) => choice(field, value, count, chosen.includes(value)));
  return make(
    "fieldset",
    {},
    make("legend", {}, TITLES[field]),
    ...boxes,
    sorted.length > FEW ? more(field, sorted.length) : null,
  );
}

function choice(field, value, count, checked) {
  const key = `${field}=${value}`;
  const input = make("input", { type: "checkbox", value, checked, "data-focus": key, onchange: toggle });
  const number = make("span", { class: "count" }, count.toLocaleString("en"), unseen(count === 1 ? " company" : " companies"));
  return make("label", { class: "choice" }, input, make("span", { class: "value" }, isolated(value)), number);

  function toggle() {
    const { filters } = current();
    const rest = filters[field].filter((other) => other !== value);
    go({ filters: { ...filters, [field]: input.checked ? [...rest, value] : rest } });
  }
}

function more(field, total) {
  const open = opened.has(field);
  const traits = { type: "button", class: "link", "aria-expanded": String(open), "data-focus": `more ${field}` };
  const words = open ? "Show fewer" : `Show all ${total}`;
  return make("button", { ...traits, onclick: flip }, words, unseen(` of ${field}`));

  function flip() {
    if (open) opened.delete(field);
    else opened.add(field);
    showFacets(current());
  }
}

export function clearFilters() {
  go({ filters: Object.fromEntries(FIELDS.map((field) => [field, []])) });
}

/** Drawing anew must not throw a keyboard user back to the top of the page. */
function keepFocus(box, redraw) {
  const key = box.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  redraw();
  if (!key) return;
  const same = [...box.querySelectorAll("[data-focus]")].find((element) => element.dataset.focus === key);
  (same ?? box.querySelector("[data-focus]"))?.focus({ preventScroll: true });
}

/** On narrow screens the filters fold away behind a button. */
export function foldFilters() {
  const toggle = byId("filters-toggle");
  toggle.addEventListener("click", () => {
    const open = toggle.getAttribute("aria-expanded") !== "true";
    toggle.setAttribute("aria-expanded", String(open));
    byId("filters").classList.toggle("open", open);
    nameToggle(toggle);
  });
}

function nameToggle(toggle) {
  const verb = toggle.getAttribute("aria-expanded") === "true" ? "Hide filters" : "Show filters";
  const chosen = Number(toggle.dataset.chosen ?? 0);
  toggle.textContent = chosen ? `${verb} (${chosen} on)` : verb;
}
