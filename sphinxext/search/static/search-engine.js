/* Finds pages. Knows nothing of the page it runs on; search.js shows the results.

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

  // How well a term fits a place, from 0 to 1.
  const FIT = {
    word: 1,
    inflected: 0.7, // a word of Hangul, and behind it a particle
    parts: 0.6, // from the beginning of a part to that of another
    beginning: 0.5, // of a part
    within: 0.2,
    withinLatin: 0.05, // and the beginning of a part, if the term is a letter or two
  };
  // The same for other terms than the one that was asked for.
  const FIT_OF_STEM = 0.5;
  const FIT_OF_SYNONYM = 0.8;
  const FIT_OF_PARTS = 0.3;
  const FIT_OF_CORRECTION = 0.3;
  const SHORTEST_STEM = { ko: 2, zh: Infinity, en: 3 };
  const MOST_CORRECTIONS = 6;
  // As in BM25: how much the length of a page counts, and where repetitions stop counting.
  const LENGTH_SHARE = 0.35;
  const SATURATION = 4;
  // Kinds of texts. A term is a word that a text defines or emphasizes.
  const [TITLE, HEADING, TERM, TEXT] = [0, 1, 2, 3];
  // The most that a text can add to a page, and the most that each kind of name can; other
  // names count less than the best one.
  const WORTH_OF_TEXT = 6;
  const WORTH_OF_NAME = [20, 10, 11];
  const SHARE_OF_OTHER_NAMES = 0.25;
  // The first words of a section name its subject, too.
  const SHARE_OF_BEGINNING = 0.7;
  // A name of several parts, as identifiers are, says more than other words.
  const WEIGHT_OF_NAME = 2;
  const WORTH_OF_PHRASE = 4;
  // Terms that stand so close, in folded characters, stand together.
  const NEAR = 40;
  const WORTH_OF_NEARNESS = 4;
  // The cost of a piece in a run of letters, see `#split`. Counting ends at OFTEN;
  // a word with synonyms counts as COUNT_OF_SYNONYM at least.
  const COST = { light: 0.5, word: 1, rareWord: 1.5, letter: 3 };
  const OFTEN = 20;
  const COUNT_OF_SYNONYM = 5;
  const LONGEST_LIGHT = 5;
  // How much of an excerpt stands before the first hit in it.
  const EXCERPT_BEFORE = 0.3;

  const MARK = "\x7f"; // before and after a term in the index
  const SPACELESS = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}";
  const WITHOUT_SPACES = new RegExp(`[${SPACELESS}]`, "u");
  const HANGUL_SCRIPT = "\\p{Script=Hangul}";
  const SCRIPTS = new RegExp(
    `${HANGUL_SCRIPT}+|[${SPACELESS}]+|[^\\s${HANGUL_SCRIPT}${SPACELESS}]+`,
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
  const entries = new Map(); // from character to [kind, folded]
  const lookUp = (character) => {
    if (!entries.has(character)) {
      const folded = character.normalize("NFKC").toLowerCase();
      entries.set(character, [kindOf(character), folded]);
    }
    return entries.get(character);
  };

  /** How a character begins, behind one of another kind or after a sign that is dropped. */
  function startOf(kind, before, underscore) {
    if (before === DROPPED) return underscore ? PART : WORD;
    if (kind === HAN) return WORD;
    if (kind === before || kind === SIGN) return WITHIN;
    if (kind > UPPER || before > UPPER) return WORD;
    // "getRank", "rank0"; but "Rank" is one part.
    return before === UPPER && kind === LOWER ? WITHIN : PART;
  }

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
      if ("+#".includes(character) && [LOWER, UPPER, SIGN].includes(before)) kind = SIGN;
      if (kind !== DROPPED) {
        const last = starts.length - 1;
        // "DDPModel": the last capital begins the part.
        if (kind === LOWER && before === UPPER && last > 0) starts[last] ||= PART;
        const start = startOf(kind, before, underscore);
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

  /** A long identifier without its first part, and without its last. */
  function partsOf({ folded, starts }) {
    const places = [...starts.keys()].filter((i) => starts[i]);
    if (!/^[a-z]/.test(folded) || places.length < 3) return [];
    return [folded.slice(places[1]), folded.slice(0, places.at(-1))];
  }

  function languageOf(word) {
    if (SYLLABLE.test(word)) return "ko";
    return WITHOUT_SPACES.test(word) ? "zh" : "en";
  }

  /** The lists of search-words.js as sets and a map. */
  function readWords({ light = {}, endings = {}, particles = {}, same = "" }) {
    const listed = (words) => words.trim().split(/\s+/);
    const synonyms = new Map();
    for (const words of same.trim().split("\n").map(listed)) {
      for (const word of words) {
        synonyms.set(word, [...(synonyms.get(word) ?? []), ...words]);
      }
    }
    return {
      light: new Set(Object.values(light).flatMap(listed)),
      endings: new Set(Object.values(endings).flatMap(listed)),
      particles: new Set(Object.values(particles).flatMap(listed)),
      synonyms,
    };
  }

  /** Whether two words differ by one letter: wrong, missing, too much or swapped. */
  function areNear(one, other) {
    if (Math.abs(one.length - other.length) > 1) return false;
    let at = 0;
    while (at < one.length && one[at] === other[at]) at++;
    const same = (i, j) => one.slice(at + i) === other.slice(at + j);
    const swapped = one[at] === other[at + 1] && one[at + 1] === other[at];
    return same(1, 1) || same(0, 1) || same(1, 0) || (swapped && same(2, 2));
  }

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
      this.pieces = []; // { page, section, kind, text, origins, from, to }
      const folded = [];
      const starts = [];
      this.lengths = pages.map(() => 0);
      let from = 0;
      const add = (page, section, kind, text) => {
        const piece = fold(text);
        const to = from + piece.folded.length;
        this.pieces.push({ page, section, kind, text, origins: piece.origins, from, to });
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
      this.meanLength = this.lengths.reduce((a, b) => a + b, 0) / (pages.length || 1);
    }

    /** The places of a folded term: a list of { piece, from, to, quality }. */
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
        // Or else "c" would be found in every word, "npu" in "input" and "elast" in "the last".
        const crosses = () => this.starts.subarray(at + 1, to).includes(WORD);
        if (latin && start === WITHIN && (term.length <= 3 || crosses())) continue;
        while (this.pieces[piece].to <= at) piece++;
        let quality = latin ? FIT.withinLatin : FIT.within;
        if (start === WORD && end === WORD) quality = FIT.word;
        else if (start === WORD && hangul) quality = FIT.inflected;
        else if (start && end) quality = FIT.parts;
        else if (start) quality = short ? FIT.withinLatin : FIT.beginning;
        quality *= weight;
        hits.push({ piece: this.pieces[piece], from: at, to, quality });
      }
      return hits;
    }

    /** The forms of a word that may stand in the text instead, with weights. */
    #formsOf(term) {
      const { endings, synonyms } = this.words;
      const forms = new Map([[term, 1]]);
      const add = (form, weight) => forms.has(form) || forms.set(form, weight);
      for (let at = SHORTEST_STEM[languageOf(term)]; at < term.length; at++) {
        if (endings.has(term.slice(at))) add(term.slice(0, at), FIT_OF_STEM);
      }
      for (const form of [...forms.keys()]) {
        for (const other of synonyms.get(form) ?? []) add(other, FIT_OF_SYNONYM);
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

    /** How often each word and each part of an identifier stands in the text. */
    #countWords() {
      const counts = new Map();
      const places = [...this.starts.keys()].filter((at) => this.starts[at]);
      const add = (from, to) => {
        const word = this.folded.slice(from, to);
        counts.set(word, (counts.get(word) ?? 0) + 1);
      };
      let word = 0;
      places.forEach((to, i) => {
        const from = places[i - 1] ?? 0;
        add(from, to);
        if (this.starts[to] !== WORD) return;
        if (word !== from) add(word, to);
        word = to;
      });
      return counts;
    }

    /** Words of the text that differ from the term by a letter, frequent ones first. */
    #corrections(term) {
      // Hangul is taken apart. One letter of fewer is too much: half of all words are alike.
      const letters = term.normalize("NFD");
      if (letters.length < (SYLLABLE.test(term) ? 4 : 3) || /^\d+$/.test(term)) return [];
      this.counts ??= this.#countWords();
      const near = [...this.counts].filter(([word]) => {
        const others = word.normalize("NFD");
        // A syllable may lack the end that is typed next: "백에" before "백엔드".
        return areNear(letters, others) || others.startsWith(letters);
      });
      near.sort((a, b) => b[1] - a[1]);
      return near.slice(0, MOST_CORRECTIONS).map(([word]) => word);
    }

    /** How often a string stands in the text, synonyms included. */
    #count(term) {
      let count = this.words.synonyms.has(term) ? COUNT_OF_SYNONYM : 0;
      let at = this.folded.indexOf(term);
      for (; at >= 0 && count < OFTEN; at = this.folded.indexOf(term, at + 1)) count++;
      return count;
    }

    /** A run of letters as the cheapest pieces of text and lists; light ones left out. */
    #split(run) {
      const { light, endings, particles } = this.words;
      const best = Array.from({ length: run.length + 1 }, () => ({ cost: Infinity }));
      best[0] = { cost: 0, pieces: [] };
      for (let from = 0; from < run.length; from++) {
        const { cost: before, pieces } = best[from];
        let count = 1;
        for (let to = from + 1; to <= run.length; to++) {
          const piece = run.slice(from, to);
          // A string that the text lacks, it lacks with more letters, too.
          if (count) count = this.#count(piece);
          if (!count && piece.length > LONGEST_LIGHT) break;
          const isLight = light.has(piece) || ((from || piece === run) && endings.has(piece));
          let cost = before + COST.letter;
          if (isLight) cost = before + COST.light;
          else if (piece.length > 1) {
            // A piece costs the more, the rarer and the longer it is; with a particle at its
            // end, more than the two apart.
            cost = before + COST.word + (COST.rareWord * piece.length) / count;
            if (particles.has(piece.at(-1))) cost += 2 * COST.light;
          }
          if (cost > best[to].cost) continue;
          best[to] = { cost, pieces: isLight ? pieces : [...pieces, piece] };
        }
      }
      return best[run.length].pieces;
    }

    /** The words of a query, taken apart, without the light ones. */
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
      // Where the script changes, another word begins.
      const split = (query.match(SCRIPTS) ?? []).map(fold).filter(({ folded }) => folded);
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
      const byPage = new Map();
      for (const { piece, from, to, quality } of hits) {
        const { page, section, kind } = piece;
        if (!byPage.has(page)) {
          const sections = new Map();
          byPage.set(page, { names: [0, 0, 0], count: 0, fit: 0, named: 0, sections });
        }
        const entry = byPage.get(page);
        const name = (kind, worth) => {
          entry.names[kind] = Math.max(entry.names[kind], worth * WORTH_OF_NAME[kind]);
        };
        let worth = quality;
        entry.fit = Math.max(entry.fit, quality);
        if (kind === TEXT) {
          entry.count += quality;
          if (from === piece.from) name(TERM, quality * SHARE_OF_BEGINNING);
        } else {
          const share = (to - from) / (piece.to - piece.from);
          if (kind === TITLE) entry.named = Math.max(entry.named, share);
          name(kind, quality);
          worth *= WORTH_OF_NAME[TITLE];
        }
        entry.sections.set(section, (entry.sections.get(section) ?? 0) + worth);
      }
      const rarity = -Math.log((byPage.size + 0.5) / (this.pages.length + 1));
      for (const [page, { names, count, sections }] of byPage) {
        const relative = this.lengths[page] / this.meanLength;
        const length = 1 - LENGTH_SHARE + LENGTH_SHARE * relative;
        const text = (WORTH_OF_TEXT * count) / (count + SATURATION * length);
        const best = Math.max(...names);
        const others = names.reduce((a, b) => a + b) - best;
        if (!scores.has(page)) {
          scores.set(page, { page, value: 0, terms: 0, covered: 0, named: 0, sections: new Map() });
        }
        const score = scores.get(page);
        score.value += factor * rarity * (best + SHARE_OF_OTHER_NAMES * others + text);
        for (const [section, worth] of sections) {
          score.sections.set(section, (score.sections.get(section) ?? 0) + rarity * worth);
        }
      }
      return { rarity, byPage };
    }

    /** Score the terms; return the pages, with the share of the terms that each covers. */
    #scoreTerms(terms, scores) {
      let total = 0;
      for (const { hits, weight } of terms) {
        const { rarity, byPage } = this.#score(hits, scores, weight);
        total += weight * Math.sqrt(rarity);
        for (const [page, { fit, named }] of byPage) {
          const score = scores.get(page);
          score.terms += 1;
          score.covered += weight * Math.sqrt(rarity * fit);
          score.named += named;
        }
      }
      const pages = [...scores.values()];
      for (const score of pages) score.covered /= total;
      return pages;
    }

    /**
     * The results of a query, as { exact, count, results }. `results(from, to)` are pages,
     * the best first. Each has an address, and title, heading and excerpt as lists of
     * [text, whether it matches]; the heading is empty where it would repeat the title.
     */
    search(query) {
      // A consonant at the end is a syllable that is still being typed.
      const composed = query.normalize("NFC");
      const typed = composed.replace(/[\u1100-\u11ff\u3130-\u318f]+$/, "");
      const { terms, phrase, exact } = this.#lookUp(typed.normalize("NFKC"));
      const scores = new Map();
      const pages = this.#scoreTerms(terms, scores);
      const worth = WORTH_OF_NEARNESS / Math.max(1, terms.length - 1);
      for (const pair of this.#together(terms)) this.#score(pair, scores, worth);
      for (const score of pages) score.value *= score.covered;
      this.#score(phrase, scores, WORTH_OF_PHRASE);
      for (const score of pages) {
        // A page that is asked for by its title is worth as much as others.
        const unnamed = Math.max(0, 1 - score.named);
        score.value *= this.pages[score.page][2] ** unnamed;
      }
      pages.sort((a, b) => b.value - a.value || a.page - b.page);
      const hits = [...terms.map((term) => term.hits), phrase].flatMap(bestInPiece);
      return {
        exact: exact && pages.some((score) => score.terms === terms.length),
        count: pages.length,
        // Excerpts take time, and only few are seen.
        results: (from, to) =>
          pages.slice(from, to).map((score) => this.#result(score, hits)),
      };
    }

    #result({ page, sections }, hits) {
      const [best] = [...sections].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0];
      const [address, allSections] = this.pages[page];
      const pieces = this.pieces.filter((x) => x.page === page);
      const text = pieces.find((x) => x.section === best && x.kind === TEXT);
      const heading = pieces.find((x) => x.section === best && x.kind === HEADING);
      const hitsOf = (piece) => hits.filter((hit) => hit.piece === piece);
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

  /** The part of a text with the most of the query: of each word, the place that fits best. */
  function excerpt(piece, hits) {
    const { text } = piece;
    const size = WITHOUT_SPACES.test(text) || SYLLABLE.test(text) ? 100 : 170;
    const ranges = hits.map((hit) => [...originalRange(piece, hit), hit]);
    const worthFrom = (start) => {
      const worths = new Map(); // from word to the best of its worths
      for (const [from, to, hit] of ranges) {
        if (from < start || to > start + (1 - EXCERPT_BEFORE) * size) continue;
        const word = text.slice(from, to).toLowerCase();
        const worth = hit.quality * (to - from);
        worths.set(word, Math.max(worths.get(word) ?? 0, worth));
      }
      return [...worths.values()].reduce((a, b) => a + b, 0);
    };
    const places = ranges.map(([from]) => [from, worthFrom(from)]);
    const [first] = places.sort((a, b) => b[1] - a[1] || a[0] - b[0])[0] ?? [0];
    let start = Math.max(0, first - Math.floor(size * EXCERPT_BEFORE));
    let end = Math.min(text.length, start + size);
    // Do not cut words.
    if (start) start += text.slice(start, start + 15).indexOf(" ") + 1;
    const space = text.lastIndexOf(" ", end);
    if (end < text.length && space > end - 15) end = space;
    const parts = marks(piece, hits, start, end);
    if (start) parts.unshift(["… ", false]);
    if (end < text.length) parts.push([" …", false]);
    return parts;
  }

  return SearchEngine;
})();
