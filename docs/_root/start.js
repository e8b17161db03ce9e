/* Opens the site in the language chosen last time, or else in the first of the browser's
   languages that the site has. Without this script the reader follows a link. */
function remembered() {
  try {
    return localStorage.getItem("language");
  } catch {
    return null; // Storage may be forbidden.
  }
}

function pick(links) {
  const chosen = links.find((link) => link.dataset.language === remembered());
  if (chosen) {
    return chosen;
  }
  const primary = (tag) => tag.toLowerCase().split("-")[0];
  for (const wanted of navigator.languages ?? []) {
    const exact = links.find((link) => link.lang.toLowerCase() === wanted.toLowerCase());
    const close = links.find((link) => primary(link.lang) === primary(wanted));
    if (exact ?? close) {
      return exact ?? close;
    }
  }
  return links[0];
}

const links = [...document.querySelectorAll("a[data-language]")];
window.location.replace(pick(links).href);
