// Result cards: who is alike, how much, and why.

import { answers } from "./answers.js";
import { anchorLink, description, facts, nameOf, tags } from "./company.js";
import { make } from "../shared/dom.js";
import { shortlistButton } from "./shortlist.js";
import { current, go, question } from "../state.js";
import { why } from "./why.js";

/** `list` says what the hit is part of: the state asked, the id of the list shown, its best score, and of what kind. */
export function card(hit, list) {
  const { company, rank } = hit;
  const title = `company-${rank}`;
  const about = question(list.state);
  return make(
    "li",
    { class: "card", "data-id": company.id },
    make(
      "article",
      { "aria-labelledby": title },
      make(
        "header",
        {},
        make("span", { class: "rank", "aria-hidden": "true" }, String(rank)),
        make("h2", { id: title }, anchorLink(company)),
        similarity(hit, list),
      ),
      facts(company),
      description(company, (hit.why ?? []).map((pair) => pair.theirs)),
      tags(company),
      why(hit, rank === 1),
      make("div", { class: "actions" }, about ? answers(hit, about, list.shown) : null, steering(company, list)),
    ),
  );
}

/** Cosines are shown as they are; scores of words have no scale of their own, so the best hit is theirs. */
function similarity({ score }, { scoredBy, best }) {
  const cosine = scoredBy !== "words";
  const share = Math.min(1, Math.max(0, cosine ? score : score / (best || 1)));
  const said = cosine ? score.toFixed(2) : `${Math.round(share * 100)} %`;
  const label = cosine ? `Similarity ${said}` : `Match ${said} of the best`;
  const fill = make("span", { class: "fill" });
  fill.style.setProperty("--share", share);
  return make(
    "div",
    { class: "similarity", role: "img", "aria-label": label, title: label },
    make("span", { class: "bar" }, fill),
    make("span", { class: "number" }, said),
  );
}

function steering(company, { state }) {
  const add = (field) => () => go({ [field]: [...current()[field], company.id] });
  const button = (words, click, hint) => {
    const traits = { type: "button", class: "quiet-button", title: hint, "aria-label": `${words}: ${nameOf(company)}` };
    return make("button", { ...traits, onclick: click }, words);
  };
  return make(
    "div",
    { class: "steering" },
    shortlistButton(company),
    state.like.includes(company.id) ? null : button("More like this", add("like"), "Add it to what is asked for"),
    state.unlike.includes(company.id) ? null : button("Less like this", add("unlike"), "Keep away from it"),
  );
}
