/* Suggestions below each field named "q", and the results on the search page.

   Loads the index when a field is first used: see search-engine.js for what it does. */
"use strict";

(() => {
  const SUGGESTIONS = 8;
  // What moves the sidebar of the theme (furo) in on a narrow screen.
  const drawer = document.getElementById("__navigation");
  const here = document.currentScript.src;
  const root = new URL("../", here);

  const loadScript = (address) =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${address}`));
      document.head.append(script);
    });

  let loading;
  /** The engine and the messages, in the language of the page. */
  function load() {
    loading ??= Promise.all([
      loadScript(new URL("search-words.js", here)),
      loadScript(new URL("search-engine.js", here)),
      loadScript(new URL("search-index.js", root)),
    ]).then(() => ({
      engine: SearchEngine.of(searchIndex),
      messages: searchIndex.messages,
    }));
    return loading;
  }

  const numbered = (text, count) => text.replace("%(count)s", count);

  function summary(messages, found) {
    if (!found.count) return messages.none;
    return numbered(found.exact ? messages.found : messages.similar, found.count);
  }

  function element(name, className, parts = []) {
    const made = document.createElement(name);
    if (className) made.className = className;
    for (const [text, matches] of parts) {
      const mark = matches ? document.createElement("mark") : null;
      if (mark) mark.textContent = text;
      made.append(mark ?? text);
    }
    return made;
  }

  function describe(link, result) {
    link.href = new URL(result.address, root);
    link.append(element("span", "search-title", result.title));
    if (result.heading.length) {
      link.append(element("span", "search-heading", result.heading));
    }
    return element(link.role ? "span" : "p", "search-excerpt", result.excerpt);
  }

  /** A line that screen readers read out when it changes. */
  function liveRegion(className) {
    const region = element("p", className);
    region.setAttribute("role", "status");
    return region;
  }

  /** Suggestions below a field: a combobox, with the focus always in the field. */
  class Suggestions {
    constructor(field, number) {
      this.field = field;
      this.active = -1;
      this.options = [];
      this.panel = element("section", "search-suggestions");
      this.panel.hidden = true;
      this.list = element("div");
      this.list.id = `search-suggestions-${number}`;
      this.list.role = "listbox";
      this.nothing = element("p");
      this.nothing.ariaHidden = "true"; // The status says it; this is for the eye.
      this.panel.append(this.list, this.nothing);
      this.status = liveRegion("search-status-unseen");
      document.body.append(this.panel, this.status);
      const attributes = {
        role: "combobox",
        autocomplete: "off",
        spellcheck: "false",
        "aria-autocomplete": "list",
        "aria-controls": this.list.id,
        "aria-expanded": "false",
      };
      for (const [name, value] of Object.entries(attributes)) {
        field.setAttribute(name, value);
      }
      field.addEventListener("focus", () => load().catch(() => {}));
      field.addEventListener("input", () => this.update());
      field.addEventListener("keydown", (event) => this.onKey(event));
      field.addEventListener("blur", () => this.close());
      // A click in the panel does not take the focus from the field.
      this.panel.addEventListener("mousedown", (event) => event.preventDefault());
      this.panel.addEventListener("click", () => {
        this.close();
        // It may lead to another place of this page.
        if (drawer) drawer.checked = false;
      });
      window.addEventListener("resize", () => this.close());
    }

    async update() {
      let loaded;
      try {
        loaded = await load();
      } catch {
        return; // The search page says so.
      }
      const query = this.field.value;
      // It may have been left, or typed into again, while the index was loading.
      if (!query.trim() || document.activeElement !== this.field) {
        this.close();
        return;
      }
      const { engine, messages } = loaded;
      const found = engine.search(query);
      this.options = found.results(0, SUGGESTIONS).map((result) => {
        const option = document.createElement("a");
        option.role = "option";
        option.append(describe(option, result));
        return option;
      });
      if (found.count > SUGGESTIONS) {
        const all = element("a", "search-all");
        all.role = "option";
        const address = new URL(this.field.form.action);
        address.searchParams.set("q", query);
        all.href = address;
        all.textContent = numbered(messages.all, found.count);
        this.options.push(all);
      }
      this.options.forEach((option, index) => {
        option.id = `${this.list.id}-${index}`;
        option.tabIndex = -1;
        option.ariaSelected = "false";
      });
      this.panel.ariaLabel = this.list.ariaLabel = messages.results;
      this.list.replaceChildren(...this.options);
      this.list.hidden = !found.count;
      this.nothing.textContent = found.count ? "" : messages.none;
      this.open();
      this.announce(summary(messages, found));
    }

    announce(text) {
      // Not at every key: a screen reader would never finish.
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.status.textContent = text;
      }, 500);
    }

    open() {
      const { left, bottom } = this.field.getBoundingClientRect();
      // The sidebar may still be on its way in.
      this.panel.style.setProperty("--search-left", `${Math.max(0, left)}px`);
      this.panel.style.setProperty("--search-top", `${bottom}px`);
      this.panel.hidden = false;
      this.panel.scrollTop = 0;
      this.field.ariaExpanded = this.options.length ? "true" : "false";
      this.select(-1);
    }

    close() {
      clearTimeout(this.timer);
      this.panel.hidden = true;
      this.status.textContent = "";
      this.field.ariaExpanded = "false";
      this.select(-1);
    }

    select(index) {
      if (this.options[this.active]) this.options[this.active].ariaSelected = "false";
      this.active = index;
      const option = this.options[index];
      if (option) {
        option.ariaSelected = "true";
        option.scrollIntoView({ block: "nearest" });
        this.field.setAttribute("aria-activedescendant", option.id);
      } else {
        this.field.removeAttribute("aria-activedescendant");
      }
    }

    onKey(event) {
      // While an input method is at work, these keys are its own.
      if (event.isComposing || event.keyCode === 229) return;
      const open = !this.panel.hidden;
      const count = this.options.length;
      if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !open) {
        this.update();
      } else if (event.key === "ArrowDown" && count) {
        // From the last option back to the field, and to the first.
        this.select(this.active + 1 < count ? this.active + 1 : -1);
      } else if (event.key === "ArrowUp" && count) {
        this.select(this.active < 0 ? count - 1 : this.active - 1);
      } else if (event.key === "Enter" && open && this.active >= 0) {
        this.options[this.active].click();
      } else if (event.key === "Escape" && open) {
        this.close();
      } else if (event.key === "Escape") {
        this.field.value = "";
        this.field.blur();
      } else {
        return;
      }
      event.preventDefault();
    }
  }

  /** The search page: a field, and below it all that was found. */
  function showResults(field, place) {
    const status = liveRegion("search-status");
    const list = element("ol", "search-results");
    place.append(status, list);
    const update = async () => {
      const query = field.value;
      let loaded;
      try {
        loaded = await load();
      } catch {
        document.getElementById("search-failed").hidden = false;
        return;
      }
      if (query !== field.value) return;
      list.replaceChildren();
      status.textContent = "";
      if (!query.trim()) return;
      const { engine, messages } = loaded;
      const found = engine.search(query);
      for (const result of found.results(0, found.count)) {
        const item = document.createElement("li");
        const link = document.createElement("a");
        item.append(link, describe(link, result));
        list.append(item);
      }
      status.textContent = summary(messages, found);
    };
    field.autocomplete = "off";
    field.value = new URLSearchParams(location.search).get("q") ?? "";
    field.addEventListener("focus", () => load().catch(() => {}));
    field.addEventListener("input", () => {
      update();
      try {
        const address = new URL(location.href);
        address.searchParams.set("q", field.value);
        history.replaceState(null, "", address);
      } catch {
        // Some browsers do not allow it on a disk.
      }
    });
    field.form.addEventListener("submit", (event) => {
      event.preventDefault();
      update();
    });
    if (field.value) update();
  }

  const place = document.getElementById("search-results");
  const fields = [...document.querySelectorAll('input[name="q"]')];
  // On the search page, the field beside the results is the one to use.
  const main = place?.parentElement.querySelector('input[name="q"]');
  fields.forEach((field, number) => {
    // They are for Sphinx's own search.
    field.form.querySelectorAll('[type="hidden"]').forEach((hidden) => hidden.remove());
    if (field === main) showResults(field, place);
    else new Suggestions(field, number);
  });

  const preferred = main ?? fields[0];
  preferred?.setAttribute("aria-keyshortcuts", "/ Control+K");

  function focusField() {
    if (drawer && preferred.getBoundingClientRect().right <= 0) drawer.checked = true;
    preferred.focus({ preventScroll: true });
    preferred.select();
  }

  const TYPING = "input, textarea, select, [contenteditable]";
  document.addEventListener(
    "keydown",
    (event) => {
      const { key, ctrlKey, metaKey, altKey, target } = event;
      const command = ctrlKey || metaKey;
      const slash = key === "/" && !command && !altKey && !target.matches?.(TYPING);
      const controlK = key.toLowerCase() === "k" && command && !altKey;
      if (event.isComposing || !preferred || !(slash || controlK)) return;
      event.preventDefault();
      event.stopImmediatePropagation(); // Sphinx has a shortcut of its own.
      focusField();
    },
    true,
  );
})();
