// What is said when there is nothing to show: before a question, while waiting, without an answer, on errors.

import { byId, make, told } from "./dom.js";
import { changed, go, hasFilters } from "../state.js";

const EXAMPLES = ["software that plans delivery routes", "low-cost airline in Europe", "organic baby food"];
const SKELETONS = 4;

/** Said by screen readers, and seen by nobody. */
export function announce(text) {
  byId("announcer").textContent = text;
}

export function welcome(filtered) {
  const examples = EXAMPLES.map((text) => {
    const href = changed({ text });
    return make("li", {}, make("a", { href, onclick: (event) => follow(event, { text }) }, text));
  });
  return make(
    "section",
    { class: "welcome" },
    make("p", {}, "Type a company's name and pick it, or say in your own words what a company does."),
    make("p", {}, "You see who is like it and which sentences say so. Your answers train the next model."),
    filtered ? make("p", { class: "quiet" }, "Your filters hold for whatever you ask.") : null,
    make("p", { class: "quiet" }, "For example"),
    make("ul", { class: "examples" }, ...examples),
  );
}

export function waiting() {
  const shapes = Array.from({ length: SKELETONS }, () => make("div", { class: "skeleton" }));
  return make("div", { class: "waiting", "aria-hidden": "true" }, ...shapes);
}

/** No company: with filters they are the likely cause, so taking them off is offered. */
export function nothing(state, clearFilters) {
  const filtered = hasFilters(state);
  return make(
    "section",
    { class: "message" },
    make("h2", {}, "No company found"),
    filtered
      ? make("p", {}, "No company passes these filters. Take some off to see more.")
      : make("p", {}, "Use other words, or match by meaning instead of by words."),
    filtered ? make("button", { type: "button", onclick: clearFilters }, "Clear filters") : null,
  );
}

/** `tryAgain` where that may be of use: by itself the page does so for what passes. */
export function failed(error, tryAgain) {
  const [title, advice] = explained(error);
  const again = error.passes ? " The page tries again by itself." : "";
  return make(
    "section",
    { class: "message error", role: "alert" },
    make("h2", {}, title),
    error.message && error.message !== title ? make("p", {}, told(error.message)) : null,
    make("p", {}, error.fix && error.status !== 401 ? told(error.fix) : advice, again),
    error.status === 404 ? null : make("button", { type: "button", onclick: tryAgain }, "Try again now"),
  );
}

/** [title, advice] for an error; the advice holds where the server names no fix. */
export function explained(error) {
  switch (error.status) {
    case 0:
      return ["The server does not answer.", "Check your connection, or ask whoever runs this page."];
    case 401:
      if (error.code === "plain_http")
        return [
          "A key is needed, and this page came over plain http.",
          "On the way it could be read by others, so it is not asked for here. Open the page by its https address.",
        ];
      return ["An API key is needed.", "Try again and enter the key you were given."];
    case 403:
      return ["This key does not allow that.", "Ask whoever runs this page for a key that does."];
    case 404:
      return ["This company is not in the index.", "Search for another one."];
    case 413:
      return ["The question is too long.", "Shorten it to a few sentences."];
    case 429:
      return ["That was a lot of questions at once.", "Wait a moment."];
    case 503:
      return ["The search is not available just now.", "It comes back by itself once its servers do."];
    default:
      if (error.status >= 500) return ["The server made a mistake.", "If it stays so, tell whoever runs this page."];
      return ["The server did not understand the question.", "Change it, or take off filters."];
  }
}

/** A click that stays on the page, unless the person wants a new tab. */
export function follow(event, change) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
  event.preventDefault();
  go(change);
}
