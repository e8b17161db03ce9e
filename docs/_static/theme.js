/* Sets the reader's theme. Loaded in the head and not deferred, so that nothing is
   painted in another one; the body takes it as soon as there is one. */
{
  let theme = "auto";
  try {
    theme = localStorage.getItem("theme") ?? theme;
  } catch {
    // Storage may be forbidden.
  }
  document.documentElement.classList.remove("no-js");
  new MutationObserver((changes, observer) => {
    if (document.body) {
      document.body.dataset.theme = theme;
      observer.disconnect();
    }
  }).observe(document.documentElement, { childList: true });
}
