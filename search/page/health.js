// Says in a person's words which part of the system is away, and notices when it is back.

import { readiness } from "./api.js";
import { byId, isolated, make } from "./dom.js";
import { announce } from "./messages.js";

const WELL_MS = 30_000;
const SICK_MS = 3_000;

const MEANING = {
  index: "The company index does not answer, so nothing can be looked up. It works again once the index is back.",
  serving: "The encoder does not answer: free text cannot be understood now. Looking from a company still may work.",
  model: "Index and encoder hold different models, so their vectors cannot be compared.",
};

/** Watches from now on; `recovered` is called when all is well after something was not. */
export function watchHealth(recovered) {
  let well = true;
  let timer = null;

  async function look() {
    clearTimeout(timer);
    const troubles = found(await readiness());
    show(troubles);
    if (!well && !troubles.length) {
      announce("All parts of the search answer again.");
      recovered();
    }
    well = !troubles.length;
    if (!document.hidden) timer = setTimeout(look, well ? WELL_MS : SICK_MS);
  }

  document.addEventListener("visibilitychange", () => document.hidden || look());
  look();
}

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
      make("p", {}, make("strong", {}, meaning), reason ? [" ", make("span", {}, isolated(reason))] : null),
    ),
  );
}
