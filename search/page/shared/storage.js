// The browser's storage, or memory for the time being where it is switched off or full.

function kept(name) {
  const memory = new Map();
  return {
    get(key) {
      if (memory.has(key)) return memory.get(key);
      try {
        return window[name].getItem(key);
      } catch {
        return null;
      }
    },
    set(key, value) {
      try {
        window[name].setItem(key, value);
        memory.delete(key);
      } catch {
        memory.set(key, value);
      }
    },
  };
}

export const lasting = kept("localStorage");
export const thisTab = kept("sessionStorage");
