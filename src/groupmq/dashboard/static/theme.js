// Runs before the first paint: the reader's choice of light or dark, else the system's.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("groupmq:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage is off: the system's choice holds.
  }
})();
