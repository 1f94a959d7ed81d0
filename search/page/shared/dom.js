// Elements without markup in strings: whatever a company is called, it arrives as text.

export const byId = (id) => document.getElementById(id);

/** An element; `on...` traits are listeners, null and false traits are left out, children are nodes or text. */
export function make(tag, traits = {}, ...children) {
  return furnish(document.createElement(tag), traits, children);
}

export function makeSvg(tag, traits = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), traits, children);
}

/** A name in a sentence: right-to-left marks in it must not turn the words around it. */
export const isolated = (text) => make("bdi", {}, text);

/** Words that only screen readers say. */
export const unseen = (...children) => make("span", { class: "unseen" }, ...children);

/** Words of the server, in which commands stand between backticks. */
export function told(text) {
  return make("bdi", {}, ...text.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part)));
}

function furnish(element, traits, children) {
  for (const [name, value] of Object.entries(traits)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
