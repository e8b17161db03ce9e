/* Offers the requested page in each language that has it, also when the language in the
   address is wrong, misspelt or missing. The language of the address comes first. */
const mount = document.body.dataset.mount;
const path = window.location.pathname;
const parts = path.slice(path.startsWith(mount) ? mount.length : 1).split("/");
const candidates = [parts.slice(1).join("/"), parts.join("/")];

async function offer(section) {
  const link = section.querySelector(".same-page");
  for (const candidate of candidates.filter((name) => name)) {
    const address = `${mount}${section.dataset.language}/${candidate}`;
    const answer = await fetch(address, { method: "HEAD" });
    if (answer.ok) {
      link.href = address + window.location.hash;
      link.parentElement.hidden = false;
      return;
    }
  }
}

const sections = [...document.querySelectorAll("section")];
const own = sections.find((section) => section.dataset.language === parts[0]);
if (own) {
  document.querySelector("h1").after(own);
}
sections.forEach(offer);
