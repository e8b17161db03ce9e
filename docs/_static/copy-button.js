/* Puts a button to copy into each listing. Prompts, output and line numbers stay behind.
   The button itself, with its labels, is in the template that this script finds. */
const template = document.getElementById("copy-button");

function codeOf(box) {
  const copy = box.querySelector("pre").cloneNode(true);
  for (const other of copy.querySelectorAll(".gp, .go, .linenos")) {
    other.remove();
  }
  return copy.textContent.replace(/\n+$/, "\n");
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not every address may use the clipboard: select, and copy what is selected.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }
}

for (const box of document.querySelectorAll("div.highlight")) {
  if (!template || box.closest(".program-output")) {
    continue;
  }
  const button = template.content.cloneNode(true).querySelector("button");
  const label = button.getAttribute("aria-label");
  button.addEventListener("click", async () => {
    await copy(button, codeOf(box));
    button.setAttribute("aria-label", button.dataset.done);
    button.classList.add("done");
    setTimeout(() => {
      button.setAttribute("aria-label", label);
      button.classList.remove("done");
    }, 2000);
  });
  box.append(button);
}
