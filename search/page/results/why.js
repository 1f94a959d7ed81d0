// Why two companies are alike: the pairs of sentences that are closest.

import { company } from "../api.js";
import { nameOf } from "./company.js";
import { isolated, make, unseen } from "../shared/dom.js";

/** Null where the server gave no reasons. */
export function why(hit, open) {
  if (!hit.why?.length) return null;
  return make(
    "details",
    { class: "why", open },
    make("summary", {}, "Why similar", unseen(": ", nameOf(hit.company))),
    make("ul", {}, ...hit.why.map((pair) => row(pair, hit.company))),
  );
}

function row({ mine, theirs, score }, found) {
  return make(
    "li",
    {},
    quote(mine.id === null ? "Your words" : named(mine.id), mine.text),
    make("span", { class: "closeness", title: "Closeness of the two sentences" }, unseen("Closeness "), score.toFixed(2)),
    quote(isolated(nameOf(found)), theirs.text),
  );
}

/** The name of a company asked for; the page has it, or is about to. */
function named(id) {
  const name = isolated("");
  company(id).then(
    (one) => name.replaceChildren(nameOf(one)),
    () => name.replaceChildren(id),
  );
  return name;
}

function quote(label, text) {
  return make("div", { class: "quote" }, make("span", { class: "quiet" }, label), make("q", { dir: "auto" }, text));
}
