// The API key, where the server wants one: asked for once, kept for this tab alone.

import { byId } from "./dom.js";
import { thisTab } from "./storage.js";

const NAME = "pause.key";
let asking = null;
let declined = false; // or what asks by itself in the background would open the dialog over and over

/** False on a page that came in plain http from elsewhere: whoever is on the way there could read the key. */
export const keyIsSafe = () => window.isSecureContext;

export const currentKey = () => (keyIsSafe() ? (thisTab.get(NAME) ?? "") : "");

/** True once there is another key than the one refused; false when the person would rather not. */
export function askForKey(refused, reason) {
  if (currentKey() !== refused) return Promise.resolve(true);
  if (declined) return Promise.resolve(false);
  asking ??= ask(reason).finally(() => (asking = null));
  return asking;
}

/** For a new question: who did not want to give a key before may want to now. */
export function mayAskAgain() {
  declined = false;
}

function ask(reason) {
  const dialog = byId("key");
  const value = byId("key-value");
  byId("key-reason").textContent = reason;
  value.value = "";
  return new Promise((resolve) => {
    byId("key-cancel").onclick = () => dialog.close();
    byId("key-form").onsubmit = () => thisTab.set(NAME, value.value.trim());
    dialog.onclose = () => {
      const given = value.value.trim() !== "" && currentKey() === value.value.trim();
      value.value = "";
      declined = !given;
      resolve(given);
    };
    dialog.showModal();
  });
}
