// The search box: names suggested as one types, an ARIA combobox for the keyboard and for screen readers.

import { suggestions } from "../api.js";
import { byId, isolated, make } from "../shared/dom.js";
import { announce } from "../shared/messages.js";

const PAUSE_MS = 120;
const LONGEST = 200; // no name begins with more, and the API takes no more

export class SearchBox {
  /** `onText` gets what was typed, `onCompany` the id of a suggestion picked. */
  constructor(onText, onCompany) {
    this.form = byId("search");
    this.input = byId("question");
    this.list = byId("suggestions");
    this.onText = onText;
    this.onCompany = onCompany;
    this.shown = null; // the text of the question that the page answers
    this.found = [];
    this.active = -1;
    this.timer = null;
    this.asked = new AbortController();
    this.form.addEventListener("submit", (event) => this.submit(event));
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.close());
    // A press must not take the focus from the input, or the list would close before the click.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  /** What is half typed stays, unless something else is asked now. */
  set(text) {
    if (this.shown !== text) this.input.value = text;
    this.shown = text;
    this.close();
  }

  submit(event) {
    event.preventDefault();
    this.close();
    const text = this.input.value.trim();
    if (text) this.onText(text);
    else this.input.focus();
  }

  typed() {
    this.forget();
    const prefix = this.input.value.trim();
    if (!prefix || prefix.length > LONGEST) return this.close();
    this.timer = setTimeout(() => this.suggest(prefix), PAUSE_MS);
  }

  async suggest(prefix) {
    const { signal } = (this.asked = new AbortController());
    try {
      const found = await suggestions(prefix, signal);
      if (!signal.aborted) this.open(found);
    } catch {
      if (!signal.aborted) this.close(); // a search without suggestions is still a search
    }
  }

  open(found) {
    this.found = found;
    this.list.replaceChildren(...found.map((one, position) => this.option(one, position)));
    this.list.hidden = !found.length;
    this.input.setAttribute("aria-expanded", String(found.length > 0));
    this.mark(-1);
    if (found.length) announce(`${found.length} suggestion${found.length === 1 ? "" : "s"}, arrow keys to choose`);
  }

  option({ name, id }, position) {
    const traits = { id: `suggestion-${position}`, role: "option", "aria-selected": "false" };
    return make("li", { ...traits, onclick: () => this.pick(position) }, isolated(name || id));
  }

  close() {
    this.forget();
    this.found = [];
    this.active = -1;
    this.list.hidden = true;
    this.list.replaceChildren();
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** What is still under way must not open the list later. */
  forget() {
    clearTimeout(this.timer);
    this.asked.abort();
  }

  mark(position) {
    this.active = position;
    const options = [...this.list.children];
    options.forEach((option, place) => option.setAttribute("aria-selected", String(place === position)));
    if (position < 0) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", `suggestion-${position}`);
    this.list.children[position].scrollIntoView({ block: "nearest" });
  }

  pick(position) {
    const { id } = this.found[position];
    this.input.value = "";
    this.close();
    this.onCompany(id);
  }

  key(event) {
    if (event.isComposing) return; // an input method's Enter and arrows are its own
    const count = this.found.length;
    if (event.key === "ArrowDown" && !count && this.input.value.trim()) {
      this.typed();
    } else if (event.key === "ArrowDown" && count) {
      this.mark(this.active + 1 >= count ? -1 : this.active + 1);
    } else if (event.key === "ArrowUp" && count) {
      this.mark(this.active < 0 ? count - 1 : this.active - 1);
    } else if (event.key === "Enter" && this.active >= 0) {
      this.pick(this.active);
    } else if (event.key === "Escape" && count) {
      this.close();
    } else {
      return;
    }
    event.preventDefault();
  }
}
