// Light, dark, or as the system has it. A classic script, so that it runs before the first paint.
(() => {
  const NAME = "pause.theme";
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  const root = document.documentElement;

  function stored() {
    try {
      return localStorage.getItem(NAME);
    } catch {
      return null; // storage may be switched off
    }
  }

  function apply(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    const name = document.getElementById("theme-name");
    if (name) name.textContent = theme;
  }

  let theme = Object.hasOwn(NEXT, stored() ?? "") ? stored() : "auto";
  apply(theme);
  document.addEventListener("DOMContentLoaded", () => {
    apply(theme);
    document.getElementById("theme").addEventListener("click", () => {
      theme = NEXT[theme];
      apply(theme);
      try {
        localStorage.setItem(NAME, theme);
      } catch {
        // then it holds for this page alone
      }
    });
  });
})();
