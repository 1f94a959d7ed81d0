// The shortlist: companies kept in this browser, exported as CSV.

import { anchorLink, facts, nameOf } from "./company.js";
import { csv, download } from "./csv.js";
import { byId, make } from "../shared/dom.js";
import { announce } from "../shared/messages.js";
import { go } from "../state.js";
import { lasting } from "../shared/storage.js";

const NAME = "pause.shortlist";
const MOST_ANCHORS = 20; // in one question; the API takes no more
const changes = new EventTarget();

function kept() {
  try {
    const companies = JSON.parse(lasting.get(NAME) ?? "[]");
    return Array.isArray(companies) ? companies.filter((company) => typeof company?.id === "string") : [];
  } catch {
    return []; // not ours, or cut short
  }
}

function keep(companies) {
  lasting.set(NAME, JSON.stringify(companies));
  changes.dispatchEvent(new Event("change"));
}

const likeable = () => kept().slice(0, MOST_ANCHORS);

const has = (id) => kept().some((company) => company.id === id);

function add(company) {
  keep([...kept().filter(({ id }) => id !== company.id), company]);
  announce(`${nameOf(company)} is on the shortlist`);
}

function remove(company) {
  keep(kept().filter(({ id }) => id !== company.id));
  announce(`${nameOf(company)} is off the shortlist`);
}

/** A button that follows the list, wherever it is changed. */
export function shortlistButton(company) {
  const button = make("button", { type: "button", class: "quiet-button keep", onclick: flip });
  draw();
  changes.addEventListener("change", follow);
  return button;

  function flip() {
    if (has(company.id)) remove(company);
    else add(company);
  }

  function follow() {
    if (button.isConnected) draw();
    else changes.removeEventListener("change", follow); // its card is gone
  }

  function draw() {
    const on = has(company.id);
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "On shortlist" : "Shortlist";
    button.setAttribute("aria-label", `${button.textContent}: ${nameOf(company)}`);
  }
}

export function startShortlist() {
  const dialog = byId("shortlist");
  byId("shortlist-open").addEventListener("click", () => {
    draw();
    dialog.showModal();
  });
  byId("shortlist-close").addEventListener("click", () => dialog.close());
  byId("shortlist-export").addEventListener("click", () => {
    download("shortlist.csv", csv(kept()));
    announce(`${kept().length} companies exported`);
  });
  byId("shortlist-like").addEventListener("click", () => {
    dialog.close();
    go({ text: "", like: likeable().map(({ id }) => id), unlike: [], view: "list" });
  });
  changes.addEventListener("change", draw);
  window.addEventListener("storage", ({ key }) => key === NAME && changes.dispatchEvent(new Event("change")));
  draw();
}

function draw() {
  const companies = kept();
  byId("shortlist-count").textContent = companies.length;
  const all = companies.length > MOST_ANCHORS ? `the first ${MOST_ANCHORS}` : "all";
  byId("shortlist-like").textContent = `Find companies like ${all} of these`;
  byId("shortlist-export").disabled = byId("shortlist-like").disabled = !companies.length;
  const empty = make("p", { class: "quiet" }, "Nothing here yet: “Shortlist” on a company puts it here.");
  const rows = companies.map((company, position) => row(company, position));
  byId("shortlist-content").replaceChildren(rows.length ? make("ul", { class: "shortlist" }, ...rows) : empty);
}

function row(company, position) {
  const link = anchorLink(company);
  link.addEventListener("click", () => byId("shortlist").close());
  const take = make("button", { type: "button", "aria-label": `Remove: ${nameOf(company)}`, onclick: drop }, "Remove");
  return make("li", {}, make("div", {}, link, facts(company)), take);

  function drop() {
    remove(company);
    const left = byId("shortlist-content").querySelectorAll("button");
    (left[Math.min(position, left.length - 1)] ?? byId("shortlist-close")).focus();
  }
}
