// "Similar" and "not similar", with undo: what is answered here trains the next model.

import { feedback } from "../api.js";
import { make } from "../shared/dom.js";
import { announce, explained } from "../shared/messages.js";
import { nameOf } from "./company.js";

const WORDS = { similar: "Similar", not_similar: "Not similar" };

const given = new Map(); // question and candidate -> answer: going back shows what was answered before

/** The two buttons for one hit; `question` is what was asked, as state.js tells it. */
export function answers(hit, question, shown) {
  const { company, rank } = hit;
  const key = JSON.stringify([question.anchor, question.text, company.id]);
  const note = make("span", { class: "note" });
  const traits = { type: "button", class: "link", "aria-label": `Undo the answer on ${nameOf(company)}` };
  const undo = make("button", { ...traits, onclick: () => answer("undo") }, "Undo");
  const buttons = Object.keys(WORDS).map((name) => choice(name));
  const box = make("div", { class: "answers", role: "group", "aria-label": "Is it similar?" }, ...buttons, note, undo);
  draw();
  return box;

  function choice(name) {
    const click = () => answer(given.get(key) === name ? "undo" : name);
    const label = `${WORDS[name]}: ${nameOf(company)}`;
    return make("button", { type: "button", "aria-label": label, "data-answer": name, onclick: click }, WORDS[name]);
  }

  async function answer(name) {
    const before = given.get(key);
    settle(name === "undo" ? undefined : name); // at once; taken back below if the server refuses
    try {
      await feedback({ shown, ...question, candidate: company.id, answer: name, rank });
      announce(name === "undo" ? "Answer taken back" : `Noted: ${WORDS[name].toLowerCase()}`);
    } catch (error) {
      settle(before);
      const [title, advice] = explained(error);
      note.textContent = `Not saved. ${error.message || title} ${error.fix || advice}`;
      announce(note.textContent);
    }
  }

  function settle(name) {
    if (name === undefined) given.delete(key);
    else given.set(key, name);
    draw();
  }

  function draw() {
    const name = given.get(key);
    const undone = undo === document.activeElement && name === undefined;
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.answer === name)));
    note.textContent = name ? "Thank you, noted." : "";
    undo.hidden = name === undefined;
    if (undone) buttons[0].focus(); // a hidden button cannot keep the focus
  }
}
