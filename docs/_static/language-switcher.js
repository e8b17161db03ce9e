/* The language links work without this script. With it, a change of language keeps
   the reader at the same heading, and the start page remembers the choice. */
for (const link of document.querySelectorAll("nav.languages a")) {
  link.addEventListener("click", () => {
    link.hash = window.location.hash;
    link.search = window.location.search;
    try {
      localStorage.setItem("language", link.dataset.language);
    } catch {
      // Storage may be forbidden; then there is nothing to remember.
    }
  });
}
