// Says in a person's words which part of the system is away, and notices when it is back.

import { readiness } from "./api.js";
import { byId, make, told } from "./shared/dom.js";
import { announce } from "./shared/messages.js";

const WELL_MS = 30_000;
const SICK_MS = 2_000;
const DOUBT_MS = 1_200; // the server itself looks at its parts once a second

let soon = () => {};

const MEANING = {
  index: "The company index does not answer, so nothing can be looked up. It works again once the index is back.",
  serving: "The encoder does not answer: free text cannot be understood now. Looking from a company still works.",
  model: "Index and encoder hold different models: free text cannot be understood now. Looking from a company still works.",
};

/** Watches from now on; `recovered` is called when all is well after something was not. */
export function watchHealth(recovered) {
  let well = true;
  let doubted = false; // since the present look began, which then says nothing of it
  let timer = null;

  async function look() {
    clearTimeout(timer);
    doubted = false;
    const troubles = found(await readiness());
    show(troubles);
    if (!well && !troubles.length) {
      announce("All parts of the search answer again.");
      recovered();
    }
    well = !troubles.length;
    const next = doubted ? DOUBT_MS : WELL_MS;
    if (!document.hidden) plan(well ? next : SICK_MS);
  }

  function plan(wait) {
    clearTimeout(timer);
    timer = setTimeout(look, wait);
  }

  document.addEventListener("visibilitychange", () => document.hidden || look());
  window.addEventListener("online", look);
  soon = () => {
    doubted = true;
    if (well) plan(DOUBT_MS);
  };
  look();
}

/** For whoever got no answer: something may be away since the last look. */
export const lookSoon = () => soon();

/** [meaning, reason] of each part that is not ok. */
function found(answer) {
  if (answer === null) return [["The server does not answer. The page keeps trying.", ""]];
  const parts = Object.keys(MEANING).filter((part) => (answer[part] ?? "ok") !== "ok");
  if (!parts.length && answer.ready === false) return [["The server is not ready yet. The page keeps trying.", ""]];
  return parts.map((part) => [MEANING[part], answer[part]]);
}

function show(troubles) {
  const box = byId("trouble");
  const text = JSON.stringify(troubles);
  if (box.dataset.shown === text) return; // said once, not at every look
  box.dataset.shown = text;
  box.hidden = !troubles.length;
  box.replaceChildren(
    ...troubles.map(([meaning, reason]) =>
      make("p", {}, make("strong", {}, meaning), reason ? make("span", { class: "quiet" }, told(reason)) : null),
    ),
  );
}
