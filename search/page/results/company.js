// How a company's fields are shown, wherever it appears.

import { isolated, make, unseen } from "../shared/dom.js";
import { follow } from "../shared/messages.js";
import { changed } from "../state.js";

// Whether a folded text hides anything depends on the width of the screen; only then it has a button.
const folds = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.classList.contains("folded")) {
      target.nextElementSibling.hidden = target.scrollHeight <= target.clientHeight;
    }
  }
});

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

/** The description with the spans marked, the closest one first; a long one is folded until asked for. */
export function description(company, spans = []) {
  const text = company.description ?? "";
  if (!text) return null;
  const paragraph = make("p", { class: "description folded", dir: "auto" }, ...marked(text, spans));
  const traits = { type: "button", class: "link", "aria-expanded": "false", hidden: true };
  const button = make("button", { ...traits, onclick: flip }, "Read all", unseen(" of ", nameOf(company)));
  folds.observe(paragraph);
  return make("div", { class: "about" }, paragraph, button);

  function flip() {
    const folded = paragraph.classList.toggle("folded");
    button.setAttribute("aria-expanded", String(!folded));
    button.firstChild.textContent = folded ? "Read all" : "Read less";
  }
}

/** Text cut into plain and marked parts; offsets count code points, as the server does, not UTF-16 units. */
export function marked(text, spans) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((one, other) => one.start - other.start)) {
    const { start, end } = span;
    if (start < at || end > letters.length || end <= start) continue; // overlaps, or is not of this text
    const traits = { class: span === spans[0] ? "closest" : "next" };
    parts.push(letters.slice(at, start).join(""), make("mark", traits, letters.slice(start, end).join("")));
    at = end;
  }
  return [...parts, letters.slice(at).join("")];
}
