// How a company's fields are shown, wherever it appears.

import { isolated, make } from "./dom.js";
import { follow } from "./messages.js";
import { changed } from "./state.js";

const LONG = 420; // characters; beyond them a description folds

export const nameOf = (company) => company.name || company.id;

/** A link that makes the company the new anchor. */
export function anchorLink(company, traits = {}) {
  const change = { text: "", like: [company.id], unlike: [] };
  const click = (event) => follow(event, change);
  return make("a", { ...traits, href: changed(change), onclick: click }, isolated(nameOf(company)));
}

export function facts(company) {
  const values = [company.sector, company.industry, company.country].filter(Boolean);
  const parts = values.map((value) => make("li", {}, isolated(value)));
  const site = website(company.website);
  if (site) parts.push(make("li", {}, site));
  return parts.length ? make("ul", { class: "facts" }, ...parts) : null;
}

export function tags(company) {
  const values = company.tags ?? [];
  if (!values.length) return null;
  return make("ul", { class: "tags", "aria-label": "Tags" }, ...values.map((tag) => make("li", {}, isolated(tag))));
}

/** Only what opens a page is a link: a website field may hold anything, `javascript:` too. */
function website(value) {
  if (!value) return null;
  const written = /^[a-z][a-z0-9+.-]*:/i.test(value) ? value : `https://${value}`;
  const url = URL.canParse(written) ? new URL(written) : null;
  if (!url || !["http:", "https:"].includes(url.protocol)) return isolated(value);
  const host = url.host.replace(/^www\./, "");
  return make("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, isolated(host));
}

/** The description with the spans marked; a long one is folded until asked for. */
export function description(company, spans = []) {
  const text = company.description ?? "";
  if (!text) return null;
  const paragraph = make("p", { class: "description", dir: "auto" }, ...marked(text, spans));
  if (text.length <= LONG) return paragraph;
  paragraph.classList.add("folded");
  const button = make("button", { type: "button", class: "link", "aria-expanded": "false", onclick: flip }, "Read all");
  return make("div", {}, paragraph, button);

  function flip() {
    const folded = paragraph.classList.toggle("folded");
    button.setAttribute("aria-expanded", String(!folded));
    button.textContent = folded ? "Read all" : "Read less";
  }
}

/** Text cut into plain and marked parts; offsets count code points, as the server does, not UTF-16 units. */
export function marked(text, spans) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const { start, end } of [...spans].sort((one, other) => one.start - other.start)) {
    if (start < at || end > letters.length || end <= start) continue; // overlaps, or is not of this text
    parts.push(letters.slice(at, start).join(""), make("mark", {}, letters.slice(start, end).join("")));
    at = end;
  }
  return [...parts, letters.slice(at).join("")];
}
