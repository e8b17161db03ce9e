/* Finds pages. Knows nothing of the page it runs on; search.js shows what it finds.

   Text and query are folded by the same function: compatibility forms and case are
   made one, and all that is neither letter nor digit is dropped, spaces too. A query is
   then looked for anywhere in the folded text. Where words and the parts of identifiers
   begin is noted beside it, since a whole word is worth more than a part of one.

   A query may be a question. Words of questions, endings and synonyms come from
   search-words.js. What remains are its terms. A page need not have all of them: it is
   worth more, the more it has, and where they stand together. */
"use strict";

globalThis.SearchEngine = (() => {
  // How a folded character begins.
  const WITHIN = 0;
  const PART = 1; // of an identifier: getRank, get_rank, rank0
  const WORD = 2;

  // Kinds of characters.
  const DROPPED = 0;
  const DIGIT = 1;
  const LOWER = 2; // and letters without case
  const UPPER = 3;
  const HANGUL = 4;
  const HAN = 5; // and Kana: scripts without spaces
  const SIGN = 6; // of "C++" and "C#"

  // How well a term fits where it is found, from 0 to 1.
  const FIT = {
    word: 1,
    inflected: 0.8, // a word, and behind it a particle or the ending of a plural
    parts: 0.6, // from the beginning of a part to that of another
    beginning: 0.4, // of a part
    within: 0.2,
    withinLatin: 0.05, // and the beginning of a part, if the term is a letter or two
  };
  // The same for other terms than the one that was asked for.
  const FIT_OF_STEM = 0.6;
  const FIT_OF_SYNONYM = 0.8;
  const FIT_OF_CONJUGATION = 0.5;
  const FIT_OF_PARTS = 0.3;
  const FIT_OF_CORRECTION = 0.3;
  const SHORTEST_STEM = { ko: 2, en: 3 };
  // Korean: the vowels that one another become before endings, and what such endings add
  // below them: none, ㄴ, ㄹ, ㅁ, ㅂ, ㅆ.
  const VOWELS = ["ㅣㅕ", "ㅜㅝ", "ㅗㅘ", "ㅡㅓ", "ㅏㅐ"];
  const FINALS = [0, 4, 8, 16, 17, 20];
  // A string that only begins a word counts this much as a correction.
  const PARTIAL_WORD = 0.01;
  // The rarer a term is, the more it is worth, and never less than this.
  const LEAST_RARITY = 0.2;
  // As in BM25: how much the length of a page counts, and where repetitions stop counting.
  const LENGTH_SHARE = 0.25;
  const SATURATION = 4;
  const SECTION_SATURATION = 2;
  // What the text of a page is worth at most, what a name of it is, and how much other
  // names count beside the best one.
  const WORTH_OF_TEXT = 6;
  const WORTH_OF_NAME = { title: 20, heading: 10, term: 11 };
  const SHARE_OF_OTHER_NAMES = 0.25;
  // What the first words of a section are worth, as a share of a term's worth.
  const SHARE_OF_BEGINNING = 0.7;
  // A name of several parts, as identifiers are, says more than other words.
  const WEIGHT_OF_NAME = 2;
  const WORTH_OF_PHRASE = 4;
  // Terms that stand so close, in folded characters, stand together.
  const NEAR = 40;
  const WORTH_OF_NEARNESS = 4;
  // What it costs to see a piece of a run of letters as this; a word costs the more, the
  // rarer and the longer it is. See `#split`.
  const COST = {
    particle: 0,
    light: 0.3,
    lightLetter: 0.5,
    word: 1,
    rareWord: 3,
    letter: 3,
    unknownLetter: 4,
  };
  const OFTEN = 20; // Counting ends here.
  const COUNT_OF_OTHERS = 5; // as which other forms and synonyms count
  const LONGEST_LIGHT = 5;
  // How much of an excerpt stands before and behind the first hit in it.
  const EXCERPT_BEFORE = 0.3;
  const EXCERPT_BEHIND = 0.7;

  const HANGUL_SCRIPT = "\\p{Script=Hangul}";
  const SPACELESS = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}";
  const WITHOUT_SPACES = new RegExp(`[${SPACELESS}]`, "u");
  const SCRIPTS = new RegExp(
    `${HANGUL_SCRIPT}+|[${SPACELESS}]+|[^${HANGUL_SCRIPT}${SPACELESS}]+`,
    "gu",
  );
  const SYLLABLE = /[\uac00-\ud7a3]/;

  const kindOf = (character) => {
    if (/\p{Script=Hangul}/u.test(character)) return HANGUL;
    if (WITHOUT_SPACES.test(character)) return HAN;
    if (/\p{Lu}/u.test(character)) return UPPER;
    if (/[\p{L}\p{M}]/u.test(character)) return LOWER;
    if (/\p{N}/u.test(character)) return DIGIT;
    return DROPPED;
  };
  const known = new Map(); // from character to [kind, folded]
  const lookUp = (character) => {
    let entry = known.get(character);
    if (!entry) {
      entry = [kindOf(character), character.normalize("NFKC").toLowerCase()];
      known.set(character, entry);
    }
    return entry;
  };

  /** Fold a text. `origins` are the places of the folded characters in it. */
  function fold(text) {
    const folded = [];
    const origins = [];
    const starts = [];
    let before = DROPPED;
    let underscore = false;
    let place = 0;
    for (const character of text) {
      let [kind, form] = lookUp(character);
      if (
        (character === "+" || character === "#") &&
        (before === LOWER || before === UPPER || before === SIGN)
      ) {
        kind = SIGN;
      }
      if (kind !== DROPPED) {
        let start = WITHIN;
        if (before === DROPPED) start = underscore ? PART : WORD;
        else if (kind === HAN) start = WORD;
        else if (kind === before || kind === SIGN) start = WITHIN;
        else if (kind <= UPPER && before <= UPPER) {
          // "getRank", "rank0"; but "Rank" is one part.
          start = before === UPPER && kind === LOWER ? WITHIN : PART;
        } else start = WORD;
        if (kind === LOWER && before === UPPER && folded.length > 1) {
          // "DDPModel": the last capital begins the part.
          const last = starts.length - 1;
          if (starts[last] === WITHIN) starts[last] = PART;
        }
        for (let i = 0; i < form.length; i++) {
          folded.push(form[i]);
          origins.push(place);
          starts.push(i ? WITHIN : start);
        }
      }
      underscore = character === "_" && (before !== DROPPED || underscore);
      before = kind;
      place += character.length;
    }
    return { folded: folded.join(""), origins, starts };
  }

  /** Forms of a Korean verb: for "느린" these are "느리", "느립", "느려" and so on. */
  function conjugations(term) {
    const code = term.charCodeAt(term.length - 1) - 0xac00;
    const vowel = String.fromCharCode(0x314f + (Math.floor(code / 28) % 21));
    const vowels = VOWELS.find((group) => group.includes(vowel));
    if (term.length < 2 || !SYLLABLE.test(term.at(-1)) || !vowels) return [];
    if (!FINALS.includes(code % 28)) return [];
    const stem = term.slice(0, -1);
    const consonant = 0xac00 + code - (code % 588);
    return [...vowels].flatMap((other) =>
      FINALS.map((final) => {
        const end = consonant + (other.charCodeAt(0) - 0x314f) * 28 + final;
        return stem + String.fromCharCode(end);
      }),
    );
  }

  /** A long identifier without its first part, and without its last. */
  function partsOf({ folded, starts }) {
    if (!/^[a-z]/.test(folded)) return [];
    const places = [...starts.keys()].filter((i) => starts[i]);
    if (places.length < 3) return [];
    return [folded.slice(places[1]), folded.slice(0, places.at(-1))];
  }

  function languageOf(word) {
    if (SYLLABLE.test(word)) return "ko";
    return WITHOUT_SPACES.test(word) ? "zh" : "en";
  }

  const listed = (words) => words.trim().split(/\s+/);

  /** What search-words.js says, ready to be looked up. */
  function readWords({ light = {}, particles = "", endings = {}, same = "" }) {
    const sets = { ko: new Set(), zh: new Set(), en: new Set() };
    for (const [language, words] of Object.entries(endings)) {
      sets[language] = new Set(listed(words));
    }
    const synonyms = new Map();
    for (const words of same.trim().split("\n").map(listed)) {
      for (const word of words) {
        synonyms.set(word, [...(synonyms.get(word) ?? []), ...words]);
      }
    }
    return {
      light: new Set(Object.values(light).flatMap(listed)),
      particles: new Set(listed(particles)),
      endings: sets,
      synonyms,
    };
  }

  /** The words of a query, folded. Where the script changes, another word begins. */
  function splitQuery(query) {
    const words = query.split(/\s+/).flatMap((word) => word.match(SCRIPTS) ?? []);
    return words.map(fold).filter(({ folded }) => folded);
  }

  /** The letters of a text, Hangul taken apart, and where each character begins. */
  function letters(text) {
    const codes = new Uint16Array(3 * text.length);
    const begins = new Uint32Array(text.length + 1);
    let length = 0;
    for (let i = 0; i < text.length; i++) {
      begins[i] = length;
      const code = text.charCodeAt(i);
      const syllable = code - 0xac00;
      if (syllable < 0 || syllable > 0x2ba3) {
        codes[length++] = code;
        continue;
      }
      codes[length++] = 0x1100 + Math.floor(syllable / 588);
      codes[length++] = 0x1161 + Math.floor((syllable % 588) / 28);
      if (syllable % 28) codes[length++] = 0x11a7 + (syllable % 28);
    }
    begins[text.length] = length;
    return { codes: codes.subarray(0, length), begins };
  }

  /** Where in `text` the query ends that begins at `at`, but for one letter. */
  function nearlyBegins(query, text, at) {
    const ends = [];
    const rest = (i, j) => {
      for (; i < query.length; i++, j++) if (query[i] !== text[j]) return;
      ends.push(j);
    };
    let i = 0;
    while (i < query.length && query[i] === text[at + i]) i++;
    const j = at + i;
    rest(i, j); // no letter is wrong
    rest(i, j + 1); // one is missing
    rest(i + 1, j + 1); // one is another
    rest(i + 1, j); // one is too much
    const swapped = query[i] === text[j + 1] && query[i + 1] === text[j];
    if (swapped) rest(i + 2, j + 2);
    return ends;
  }

  const TITLE = 0;
  const HEADING = 1;
  const TERM = 2; // that the text defines or emphasizes
  const TEXT = 3;

  const MARK = "\x7f"; // before and after a term

  class SearchEngine {
    /** An engine for an index as the extension writes it. */
    static of({ pages, headings, texts }) {
      let place = 0;
      const section = (anchor) => {
        const heading = headings[place].split(MARK);
        const text = texts[place].split(MARK);
        place += 1;
        const terms = [heading, text].flatMap((x) => x.filter((_, i) => i % 2));
        return [anchor, heading.join(""), text.join(""), terms];
      };
      return new SearchEngine(
        pages.map(([address, weight, anchors]) => [address, anchors.map(section), weight]),
      );
    }

    /** `pages`: a list of [address, [[anchor, heading, text, terms], ...], weight]. */
    constructor(pages, words = globalThis.searchWords ?? {}) {
      this.pages = pages;
      this.words = readWords(words);
      // All texts stand in one string, so that the browser's own search runs over them.
      this.pieces = []; // { page, section, kind, text, origins, from, to, length }
      const folded = [];
      const starts = [];
      this.lengths = pages.map(() => 0);
      let from = 0;
      const add = (page, section, kind, text) => {
        const piece = fold(text);
        const to = from + piece.folded.length;
        const { origins } = piece;
        // What stands in parentheses says the same in other words.
        const essence = kind === TEXT ? "" : text.replace(/[(（].*?[)）]/g, "");
        const { length } = fold(essence).folded;
        this.pieces.push({ page, section, kind, text, origins, from, to, length });
        this.lengths[page] += piece.folded.length;
        folded.push(piece.folded);
        for (const start of piece.starts) starts.push(start);
        starts.push(WORD); // of the newline, which no query holds
        from = to + 1;
      };
      pages.forEach(([, sections], page) => {
        sections.forEach(([, heading, text, terms], section) => {
          add(page, section, section ? HEADING : TITLE, heading);
          for (const term of terms) add(page, section, TERM, term);
          add(page, section, TEXT, text);
        });
      });
      this.folded = folded.join("\n") + "\n";
      this.starts = Uint8Array.from(starts);
      this.letters = letters(this.folded);
      this.meanLength = this.lengths.reduce((a, b) => a + b, 0) / (pages.length || 1);
    }

    /** Where a folded term stands: a list of { piece, from, to, quality }. */
    #find(term, weight) {
      const hits = [];
      if (!term) return hits;
      const short = /^[a-z0-9]{1,2}$/.test(term);
      const latin = /^[a-z0-9]/.test(term);
      const hangul = SYLLABLE.test(term[term.length - 1]);
      let piece = 0;
      const next = (from) => this.folded.indexOf(term, from);
      for (let at = next(0); at >= 0; at = next(at + 1)) {
        const start = this.starts[at];
        const to = at + term.length;
        const end = this.starts[to];
        const plural = latin && this.folded[to] === "s" && this.starts[to + 1] === WORD;
        // Or else "c" would be found in every word.
        if (short && start === WITHIN) continue;
        // Or else "elast" would be found in "the last".
        if (latin && start === WITHIN && this.#crossesWords(at, to)) continue;
        while (this.pieces[piece].to <= at) piece++;
        let quality = latin ? FIT.withinLatin : FIT.within;
        if (start === WORD && end === WORD) quality = FIT.word;
        else if (start === WORD && (hangul || plural)) quality = FIT.inflected;
        else if (start && end) quality = FIT.parts;
        else if (start) quality = short ? FIT.withinLatin : FIT.beginning;
        quality *= weight;
        hits.push({ piece: this.pieces[piece], from: at, to, quality });
      }
      return hits;
    }

    /** The forms of a word that may stand in the text instead, with weights. */
    #formsOf(term) {
      const { particles, endings, synonyms } = this.words;
      const forms = new Map([[term, 1]]);
      const add = (form, weight) => forms.has(form) || forms.set(form, weight);
      const language = languageOf(term);
      const isEnding = (end) =>
        endings[language].has(end) || (language === "ko" && particles.has(end));
      for (const [form] of forms) {
        for (let at = SHORTEST_STEM[language]; at < form.length; at++) {
          if (isEnding(form.slice(at))) add(form.slice(0, at), FIT_OF_STEM);
        }
        if (language === "en") break; // An English word has one ending.
      }
      for (const form of [...forms.keys()]) {
        for (const other of synonyms.get(form) ?? []) add(other, FIT_OF_SYNONYM);
      }
      for (const form of [...forms.keys()]) {
        for (const other of conjugations(form)) add(other, FIT_OF_CONJUGATION);
      }
      return forms;
    }

    #findForms(term) {
      const best = new Map(); // from place to hit
      for (const [form, weight] of this.#formsOf(term)) {
        for (const hit of this.#find(form, weight)) {
          if (!(best.get(hit.from)?.quality >= hit.quality)) best.set(hit.from, hit);
        }
      }
      return [...best.values()];
    }

    #crossesWords(from, to) {
      return this.starts.subarray(from + 1, to).includes(WORD);
    }

    /** Strings of the text that differ from the term by a letter, likely ones first. */
    #corrections(term) {
      const query = letters(term).codes;
      // One letter of fewer is too much of them: half of all words would be alike.
      const fewest = SYLLABLE.test(term) ? 4 : 3;
      if (query.length < fewest || /^\d+$/.test(term)) return [];
      const { codes, begins } = this.letters;
      const found = new Map();
      for (let from = 0; from < this.folded.length; from++) {
        if (!this.starts[from]) continue;
        const at = begins[from];
        // Most places are none, and this is seen from two letters.
        const one = codes[at];
        const two = codes[at + 1];
        const likely = one === query[0] || one === query[1] || two === query[0];
        if (!likely && two !== query[1]) continue;
        for (const end of nearlyBegins(query, codes, at)) {
          let to = from;
          while (begins[to] < end) to++;
          const word = this.folded.slice(from, to);
          const whole = this.starts[to] || SYLLABLE.test(word[word.length - 1]);
          found.set(word, (found.get(word) ?? 0) + (whole ? 1 : PARTIAL_WORD));
        }
      }
      const byCount = [...found].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      return byCount.slice(0, 6).map(([word]) => word);
    }

    /** How often a string stands in the text, other forms and synonyms included. */
    #count(term) {
      const others = [...(this.words.synonyms.get(term) ?? []), ...conjugations(term)];
      let count = others.some((other) => this.folded.includes(other)) ? COUNT_OF_OTHERS : 0;
      let at = this.folded.indexOf(term);
      for (; at >= 0 && count < OFTEN; at = this.folded.indexOf(term, at + 1)) count++;
      return count;
    }

    /** What a piece of a run of letters costs, and whether it is light. */
    #costOf(piece, count, mayEnd) {
      const { light, particles, endings } = this.words;
      const { length } = piece;
      if (mayEnd && particles.has(piece)) return [COST.particle, true];
      if (light.has(piece) || (mayEnd && endings[languageOf(piece)].has(piece))) {
        return [length === 1 ? COST.lightLetter : COST.light, true];
      }
      if (length === 1) return [count ? COST.letter : COST.unknownLetter, false];
      if (!count) return [Infinity, false];
      const size = Math.max(1, (length - 1) / 2);
      return [COST.word + (COST.rareWord * size) / count, false];
    }

    /** A run of letters as the cheapest pieces of text and lists; light ones left out. */
    #split(run) {
      const best = Array.from({ length: run.length + 1 }, () => ({ cost: Infinity }));
      best[0] = { cost: 0, pieces: [] };
      for (let from = 0; from < run.length; from++) {
        const { cost: before, pieces } = best[from];
        let count = 1;
        for (let to = from + 1; to <= run.length; to++) {
          const piece = run.slice(from, to);
          // What the text lacks, it lacks with more letters, too.
          if (count) count = this.#count(piece);
          if (!count && piece.length > LONGEST_LIGHT) break;
          const [cost, isLight] = this.#costOf(piece, count, from || piece === run);
          if (before + cost > best[to].cost) continue;
          best[to] = { cost: before + cost, pieces: isLight ? pieces : [...pieces, piece] };
        }
      }
      return best[run.length].pieces;
    }

    /** What a query is about: its words, taken apart, without the light ones. */
    #termsOf(words) {
      const terms = words.flatMap((word) => {
        if (languageOf(word) === "en") return this.words.light.has(word) ? [] : [word];
        const pieces = this.#split(word);
        // Letters alone come from a word that is misspelt, or that the text lacks.
        const likely = word.length === 1 || pieces.every((piece) => piece.length > 1);
        return likely || !this.#corrections(word).length ? pieces : [word];
      });
      return [...new Set(terms.length ? terms : words)];
    }

    /** For each term its hits and its weight; and whether words had to be replaced. */
    #lookUp(query) {
      const split = splitQuery(query);
      const words = split.map(({ folded }) => folded);
      const parts = new Map(split.map((word) => [word.folded, partsOf(word)]));
      let exact = true;
      const terms = this.#termsOf(words).map((term) => {
        const hits = this.#findForms(term);
        const partsOfTerm = parts.get(term) ?? [];
        for (const part of partsOfTerm) hits.push(...this.#find(part, FIT_OF_PARTS));
        if (!hits.some((hit) => hit.quality >= FIT.beginning)) {
          for (const word of this.#corrections(term)) {
            hits.push(...this.#find(word, FIT_OF_CORRECTION));
          }
        }
        exact &&= this.folded.includes(term);
        return { term, hits, weight: partsOfTerm.length ? WEIGHT_OF_NAME : 1 };
      });
      const phrase = words.join("");
      return {
        terms: terms.filter(({ hits }) => hits.length),
        phrase: terms.some(({ term }) => term === phrase) ? [] : this.#findForms(phrase),
        exact,
      };
    }

    /** For each two terms the places where they stand close together, as hits. */
    #together(terms) {
      const all = terms.flatMap(({ hits, term }) =>
        hits.filter((hit) => hit.quality >= FIT.within).map((hit) => ({ ...hit, term })),
      );
      all.sort((a, b) => a.from - b.from || b.to - a.to);
      const pairs = new Map();
      all.forEach((hit, place) => {
        const before = all[place - 1];
        if (before?.piece !== hit.piece || before.term === hit.term) return;
        const gap = hit.from - before.to;
        if (gap < 0 || gap > NEAR) return;
        const pair = [before.term, hit.term].sort().join(" ");
        if (!pairs.has(pair)) pairs.set(pair, []);
        const quality = Math.min(before.quality, hit.quality);
        pairs.get(pair).push({ piece: hit.piece, from: before.from, to: hit.to, quality });
      });
      return pairs.values();
    }

    /**
     * Add what a set of hits is worth to the pages and sections they stand in. Return how
     * rare they are, and of each page how well they fit and which share of its title.
     */
    #score(hits, scores, factor) {
      const found = new Map(); // from page to what it is worth
      for (const hit of hits) {
        const { page, section, kind, length } = hit.piece;
        if (!found.has(page)) {
          const sections = new Map();
          found.set(page, { best: [0, 0, 0], count: 0, fit: 0, named: 0, sections });
        }
        const entry = found.get(page);
        let worth = hit.quality;
        entry.fit = Math.max(entry.fit, worth);
        if (kind === TEXT) {
          entry.count += worth;
          // What a section begins with, it is about.
          const name = hit.from === hit.piece.from ? worth * SHARE_OF_BEGINNING : 0;
          entry.best[TERM] = Math.max(entry.best[TERM], name);
        } else {
          // The more of the heading is what was asked for, the better.
          const share = Math.min(1, (hit.to - hit.from) / length);
          if (kind === TITLE) entry.named = Math.max(entry.named, share);
          worth *= 0.5 + 0.5 * share;
          entry.best[kind] = Math.max(entry.best[kind], worth);
          worth *= WORTH_OF_NAME.title;
        }
        entry.sections.set(section, (entry.sections.get(section) ?? 0) + worth);
      }
      const share = (found.size + 0.5) / (this.pages.length + 1);
      const rarity = Math.max(LEAST_RARITY, -Math.log(share));
      for (const [page, entry] of found) {
        const relative = this.lengths[page] / this.meanLength;
        const length = 1 - LENGTH_SHARE + LENGTH_SHARE * relative;
        const text = (WORTH_OF_TEXT * entry.count) / (entry.count + SATURATION * length);
        const { best: inNames } = entry;
        const named = [
          WORTH_OF_NAME.title * inNames[TITLE],
          WORTH_OF_NAME.heading * inNames[HEADING],
          WORTH_OF_NAME.term * inNames[TERM],
        ];
        const best = Math.max(...named);
        const others = named[0] + named[1] + named[2] - best;
        const value = best + SHARE_OF_OTHER_NAMES * others + text;
        if (!scores.has(page)) {
          const sections = new Map();
          scores.set(page, { page, value: 0, terms: 0, covered: 0, named: 0, sections });
        }
        const score = scores.get(page);
        score.value += factor * rarity * value;
        for (const [section, worth] of entry.sections) {
          const saturated = rarity * (worth / (worth + SECTION_SATURATION));
          score.sections.set(section, (score.sections.get(section) ?? 0) + saturated);
        }
      }
      return { rarity, found };
    }

    /** Score the terms; return the pages, with the share of the terms that each covers. */
    #scoreTerms(terms, scores) {
      let total = 0;
      for (const { hits, weight } of terms) {
        const { rarity, found } = this.#score(hits, scores, weight);
        total += weight * Math.sqrt(rarity);
        for (const [page, { fit, named }] of found) {
          const score = scores.get(page);
          score.terms += 1;
          score.covered += weight * Math.sqrt(rarity * fit);
          score.named += named;
        }
      }
      const found = [...scores.values()];
      for (const score of found) score.covered /= total;
      return found;
    }

    /**
     * What a query finds, as { exact, count, results }. `results(from, to)` are pages,
     * the best first. Each has an address, and title, heading and excerpt as lists of
     * [text, whether it matches]; the heading is empty where it would repeat the title.
     */
    search(query) {
      // A consonant at the end is a syllable that is still being typed.
      const composed = query.normalize("NFC");
      const typed = composed.replace(/[\u1100-\u11ff\u3130-\u318f]+$/, "");
      const { terms, phrase, exact } = this.#lookUp(typed.normalize("NFKC"));
      const scores = new Map();
      const found = this.#scoreTerms(terms, scores);
      const worth = WORTH_OF_NEARNESS / Math.max(1, terms.length - 1);
      for (const pair of this.#together(terms)) this.#score(pair, scores, worth);
      for (const score of found) score.value *= score.covered;
      this.#score(phrase, scores, WORTH_OF_PHRASE);
      for (const score of found) {
        // A page that is asked for by its title is worth as much as others.
        const unnamed = Math.max(0, 1 - score.named);
        score.value *= this.pages[score.page][2] ** unnamed;
      }
      found.sort((a, b) => b.value - a.value || a.page - b.page);
      const byPiece = new Map();
      for (const hits of [...terms.map((term) => term.hits), phrase]) {
        for (const hit of bestInPiece(hits)) {
          if (!byPiece.has(hit.piece)) byPiece.set(hit.piece, []);
          byPiece.get(hit.piece).push(hit);
        }
      }
      return {
        exact: exact && found.some((score) => score.terms === terms.length),
        count: found.length,
        // Excerpts take time, and only few are seen.
        results: (from, to) =>
          found.slice(from, to).map((score) => this.#result(score, byPiece)),
      };
    }

    #result({ page, sections }, byPiece) {
      let best = 0;
      for (const [section, worth] of sections) {
        const lead = worth - (sections.get(best) ?? 0);
        if (lead > 0 || (lead === 0 && section < best)) best = section;
      }
      const [address, allSections] = this.pages[page];
      const pieces = this.pieces.filter((x) => x.page === page);
      const text = pieces.find((x) => x.section === best && x.kind === TEXT);
      const heading = pieces.find((x) => x.section === best && x.kind === HEADING);
      const hitsOf = (piece) => byPiece.get(piece) ?? [];
      const marked = (piece) => marks(piece, hitsOf(piece), 0, piece.text.length);
      const anchor = best ? allSections[best][0] : "";
      return {
        address: anchor ? `${address}#${encodeURIComponent(anchor)}` : address,
        title: marked(pieces[0]),
        heading: heading ? marked(heading) : [],
        excerpt: excerpt(text, hitsOf(text)),
      };
    }
  }

  /** Leave out parts of words where there are whole ones. */
  function bestInPiece(hits) {
    const best = new Map();
    for (const { piece, quality } of hits) {
      best.set(piece, Math.max(best.get(piece) ?? 0, quality));
    }
    return hits.filter((hit) => hit.quality >= best.get(hit.piece) / 2);
  }

  /** A part of a piece's text, cut where it matches. */
  function marks(piece, hits, from, to) {
    const ranges = hits
      .map((hit) => originalRange(piece, hit))
      .filter(([start, end]) => start >= from && end <= to)
      .sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    const parts = [];
    let at = from;
    for (const [start, end] of ranges) {
      if (end <= at) continue;
      if (start > at) parts.push([piece.text.slice(at, start), false]);
      parts.push([piece.text.slice(Math.max(at, start), end), true]);
      at = end;
    }
    if (at < to) parts.push([piece.text.slice(at, to), false]);
    return parts;
  }

  function originalRange(piece, hit) {
    const last = piece.origins[hit.to - 1 - piece.from];
    const width = piece.text.codePointAt(last) > 0xffff ? 2 : 1;
    return [piece.origins[hit.from - piece.from], last + width];
  }

  /** The part of a text where most of what was asked for stands close together. */
  function excerpt(piece, hits) {
    const { text } = piece;
    const wide = WITHOUT_SPACES.test(text) || SYLLABLE.test(text);
    const size = wide ? 100 : 170;
    const ranges = hits
      .map((hit) => ({ range: originalRange(piece, hit), hit }))
      .sort((a, b) => a.range[0] - b.range[0]);
    let start = 0;
    let best = 0;
    for (let i = 0; i < ranges.length; i++) {
      const end = ranges[i].range[0] + EXCERPT_BEHIND * size;
      const different = new Map(); // from word to what it is worth
      for (let j = i; j < ranges.length && ranges[j].range[1] <= end; j++) {
        const { from, to, quality } = ranges[j].hit;
        const word = text.slice(...ranges[j].range).toLowerCase();
        different.set(word, Math.max(different.get(word) ?? 0, quality * (to - from)));
      }
      let worth = 0;
      for (const value of different.values()) worth += value;
      if (worth > best) {
        best = worth;
        start = ranges[i].range[0];
      }
    }
    start = Math.max(0, start - Math.floor(size * EXCERPT_BEFORE));
    let end = Math.min(text.length, start + size);
    // Do not cut words.
    if (start) {
      const space = text.indexOf(" ", start);
      if (space >= 0 && space < start + 15) start = space + 1;
    }
    if (end < text.length) {
      const space = text.lastIndexOf(" ", end);
      if (space > end - 15) end = space;
    }
    const parts = marks(piece, hits, start, end);
    if (start) parts.unshift(["… ", false]);
    if (end < text.length) parts.push([" …", false]);
    return parts;
  }

  SearchEngine.fold = fold;
  return SearchEngine;
})();
