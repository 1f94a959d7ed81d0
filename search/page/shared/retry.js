// Asks again, with growing pauses, what failed for a reason that passes by itself; the error is shown meanwhile.

import { mayAskAgain } from "./key.js";
import { lookSoon } from "../health.js";
import { announce, failed } from "./messages.js";

const FIRST_SECONDS = 2;
const LONGEST_SECONDS = 30;

let wake = null;

/** What `ask` gives in the end, errors shown in `place`; rejects only when the signal is aborted. */
export async function retrying(ask, place, signal) {
  for (let seconds = FIRST_SECONDS; ; seconds = Math.min(2 * seconds, LONGEST_SECONDS)) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted) throw error;
      if (error.status === undefined) throw error; // a fault of the page itself
      tell(error, place);
      if (error.passes) lookSoon();
      await pause(error.passes ? Math.max(seconds, error.retrySeconds) : null, signal);
      place.setAttribute("aria-busy", "true");
    }
  }
}

/** Said once, not at every try: a screen reader would repeat it, and the button lose its focus. */
function tell(error, place) {
  const text = JSON.stringify([error.status, error.message]);
  if (place.firstElementChild?.dataset.error !== text) place.replaceChildren(failed(error, retryNow));
  place.firstElementChild.dataset.error = text;
  place.removeAttribute("aria-busy");
}

/** Asks again at once where somebody waits. */
export function retryNow() {
  if (!wake) return;
  mayAskAgain();
  announce("Trying again");
  wake();
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      if (wake === end) wake = null;
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = seconds === null ? null : setTimeout(end, seconds * 1000);
    wake = end;
    signal.addEventListener("abort", end, { once: true });
  });
}
