// What answers here: model, number of companies, age of the newest record.

import { status } from "./api.js";
import { byId, make } from "./shared/dom.js";

const AGAIN_MS = 10_000;
let timer = null;

const UNITS = [
  ["year", 365 * 86400],
  ["month", 30 * 86400],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

export async function showFacts() {
  const facts = byId("facts");
  clearTimeout(timer);
  try {
    const { model, companies, newest_record: newest, index } = await status();
    facts.replaceChildren(
      "Model ",
      make("code", {}, model),
      ` · ${companies.toLocaleString("en")} ${companies === 1 ? "company" : "companies"}`,
      newest ? " · newest record " : "",
      newest ? make("time", { datetime: newest, title: newest }, age(newest)) : "",
      index ? ` · index: ${index}` : "",
    );
  } catch {
    facts.textContent = "Model and number of companies are not known: the server does not say.";
    timer = setTimeout(showFacts, AGAIN_MS);
  }
}

export function age(moment, now = Date.now()) {
  const seconds = (now - Date.parse(moment)) / 1000;
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ["moment", 1];
  if (unit === "moment") return "just now";
  const number = Math.floor(seconds / length);
  return `${number} ${unit}${number === 1 ? "" : "s"} ago`;
}
