// Two panes: translated as one types, sentence by sentence; a word of the translation shows what it looked at, and what
// could stand there.
import { ask, button, byId, chosenModel, decimal, language, later, latest, linkTo, make, models, nats, number, percent, remember, state, twin } from "./common.js";
import { wordsOf } from "./diff.js";
import { documents } from "./documents.js";
import { glossary, terms } from "./glossary.js";
import { chosenLanguages, offer, onLanguages } from "./languages.js";

const MOST = 20000; // characters of a text
const LONG = 2000; // longer texts are translated line by line, without going into words
const AT_ONCE = 128; // lines
const known = await models();
const source = byId("source"), target = byId("target");
let shown = null; // the sentences of the translation, see `cut`; null: there is none
let pinned = null; // [sentence, word]
let forced = new Map(); // translations to go through in place of the model's own, by the numbers of their sentences

const select = chosenModel(() => { offer(known[select.value], chosenLanguages()); changed(); });
onLanguages(changed);

const size = (text) => [...text].length;
const whole = () => shown.parts.map(({ gap, text }) => gap + text).join("") + shown.rest;

function ways() {
  const own = known[select.value].languages ?? ["Source", "Translation"];
  const { from_language: from = own[0], to = own[1] } = chosenLanguages();
  return [from, to];
}

function changed() {
  forced = new Map();
  languages();
  translate();
}

function languages() {
  const [from, to] = ways();
  for (const [label, node, name] of [["from", source, from], ["to", target, to]]) {
    const { code, title } = language(name);
    node.lang = code;
    byId(label).textContent = title;
  }
  byId("swap").hidden = back() === null;
  glossary(known[select.value], from, to, translate);
  documents(known[select.value], chosenLanguages);
}

// ------------------------------------------------------------------------------------------------- questions

const asked = latest(
  async (signal) => {
    const text = source.value, question = { model: select.value, ...chosenLanguages() };
    if (!text.trim() || question.to === "" || size(text) > MOST) return null;
    target.ariaBusy = "true";
    return size(text) > LONG ? byLine(text, signal) : bySentence(text, question, signal);
  },
  show,
  () => show(null),
);

async function bySentence(text, question, signal) {
  const { answers: [found] } = await ask("align", { ...question, text, options: terms() }, signal);
  const cutUp = cut(found);
  for (const [place, translation] of forced) {
    if (place < cutUp.parts.length) cutUp.parts[place] = { ...cutUp.parts[place], ...(await through(cutUp.parts[place], translation, signal)) };
  }
  return cutUp;
}

// A sentence with another translation than the model's own.
async function through({ source: text }, translation, signal) {
  const options = { ...terms(), target: translation };
  const { answers: [found] } = await ask("align", { model: select.value, ...chosenLanguages(), text, options }, signal);
  const [{ text: said, words, heard, confidence, warning }] = cut(found).parts;
  return { text: said, words, heard, confidence, warning, forced: translation };
}

// Lines that are empty stay.
async function byLine(text, signal) {
  const lines = text.split("\n"), records = await translations(lines.filter((line) => line.trim()), {}, signal);
  let gap = "";
  const parts = [];
  for (const [i, line] of lines.entries()) {
    if (line.trim()) {
      const { text: said, confidence, warning, unlike } = records[parts.length];
      parts.push({ gap, source: line, text: said, confidence, warning, unlike });
      gap = "";
    }
    if (i + 1 < lines.length) gap += "\n";
  }
  return { parts, rest: gap, confidence: Math.min(...parts.map(({ confidence }) => confidence)), calibrated: records[0].calibrated };
}

// The record of each of these texts.
async function translations(texts, options, signal) {
  const records = [];
  while (records.length < texts.length) {
    const inputs = texts.slice(records.length, records.length + AT_ONCE);
    const question = { model: select.value, ...chosenLanguages(), inputs, options: { ...terms(), ...options } };
    records.push(...(await ask("translate", question, signal)).answers);
  }
  return records;
}

// An answer of /api/align as sentences, each with what stands before it, and its own words.
function cut({ text, source: heard, words, sentences, confidence, calibrated }) {
  let [at, word, from] = [0, 0, 0];
  const parts = sentences.map((sentence) => {
    const begin = text.indexOf(sentence.text, at), gap = text.slice(at, begin);
    [at, word, from] = [begin + sentence.text.length, word + sentence.words, from + sentence.source_words];
    const own = (list) => list.slice(from - sentence.source_words, from);
    const said = words.slice(word - sentence.words, word).map((each) => ({ ...each, source: own(each.source) }));
    return { ...sentence, gap, words: said, heard: own(heard) };
  });
  return { parts, rest: text.slice(at), confidence, calibrated };
}

function translate() {
  const kept = Object.fromEntries(Object.keys(state()).filter((key) => /^target\d*$/.test(key)).map((key) => [key, null]));
  for (const [place, translation] of forced) kept[place ? `target${place}` : "target"] = translation;
  remember({ from_language: null, to: null, model: select.value, ...chosenLanguages(), text: source.value, ...kept });
  tally();
  if (!source.value.trim() || size(source.value) > MOST) show(null); // at once, and whatever was asked before
  asked();
}

// ------------------------------------------------------------------------------------------------- what is shown

function show(answer) {
  [shown, pinned] = [answer, null];
  target.ariaBusy = "false";
  byId("others").replaceChildren();
  byId("copied").textContent = "";
  byId("copy").disabled = shown === null;
  target.replaceChildren(...(shown ? shown.parts.flatMap((part, i) => [part.gap, ...words(part, i)]) : []), shown?.rest ?? "");
  byId("sure").textContent = !shown ? "sure" : shown.calibrated ? `sure; the least sure sentence ${percent(shown.confidence)}` : "likely (not calibrated)";
  if (shown?.calibrated && shown.parts.length === 1) byId("sure").textContent = `sure; the whole ${percent(shown.confidence)}`;
  pointAt(null);
  sentences();
  listBest();
  links();
}

function tally() {
  const count = size(source.value), many = wordsOf(source.value).filter((word) => /\p{L}|\p{N}/u.test(word)).length;
  const over = count > MOST ? ": too long to be translated here. Save it as a file, and translate that as a document." : "";
  byId("count").textContent = `${number(count)} of ${number(MOST)} characters, ${number(many)} ${many === 1 ? "word" : "words"}${over}`;
  byId("count").classList.toggle("wrong", over !== "");
}

// What is to be told of a sentence.
const toCheck = ({ warning, unlike }) => [warning, unlike && "unlike all that the model was trained on"].filter(Boolean).join("; ");

const doubt = (confidence) => (confidence < 0.4 ? "unsure" : confidence < 0.8 ? "doubtful" : "");

// A text with its parts as nodes; spaces as the text has them: none between characters of a script without spaces.
function spaced(text, nodes) {
  const parts = [];
  let at = 0;
  for (const node of nodes) {
    const begin = text.indexOf(node.textContent, at);
    if (begin > at) parts.push(text.slice(at, begin));
    parts.push(node);
    at = Math.max(at, begin) + node.textContent.length;
  }
  return [...parts, text.slice(at)];
}

function words({ text, words: own }, sentence) {
  if (!own) return [text];
  const nodes = own.map((word, place) => {
    // No <button>: words in one would not stand in the order of their script, and could not be selected from within.
    const node = make("span", {
      className: `said ${doubt(word.confidence)}`, textContent: word.text, title: `${percent(word.confidence)} sure`, role: "button", tabIndex: 0, ariaPressed: "false",
    });
    const here = [sentence, place];
    node.dataset.place = here;
    node.addEventListener("pointerenter", () => pointAt(here));
    node.addEventListener("pointerleave", () => pointAt(pinned));
    node.addEventListener("focus", () => pointAt(here));
    node.addEventListener("blur", () => pointAt(pinned));
    node.addEventListener("click", () => getSelection().isCollapsed && choose(here));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(here);
    });
    return node;
  });
  return spaced(text, nodes);
}

// Lights the source words that a word of the translation looked at, in its sentence.
function pointAt(place) {
  const heard = byId("heard");
  if (!source.hidden) heard.style.minHeight = `${source.getBoundingClientRect().height}px`; // so that no word moves from under the pointer
  heard.hidden = place === null || !shown;
  source.hidden = !heard.hidden;
  for (const node of target.querySelectorAll(".said")) node.ariaPressed = String(node.dataset.place === String(pinned));
  byId("aside").textContent = "";
  if (heard.hidden) return heard.replaceChildren();
  const [sentence, word] = place, { source: own, heard: read, words: said } = shown.parts[sentence];
  const { text, confidence, probability, source: shares } = said[word];
  const nodes = read.map((each, i) => {
    const node = make("span", { className: "said", textContent: each, title: decimal(shares[i]) });
    node.style.setProperty("--share", shares[i]);
    return node;
  });
  const begin = shown.parts.slice(0, sentence).reduce((at, part) => source.value.indexOf(part.source, at) + part.source.length, 0);
  const at = source.value.indexOf(own, begin);
  heard.replaceChildren(source.value.slice(0, at), make("span", { className: "sentence" }, ...spaced(own, nodes)), source.value.slice(at + own.length));
  const [best] = shares.map((share, i) => [share, read[i]]).sort((a, b) => b[0] - a[0]);
  byId("aside").textContent = best ? `“${text}”, ${percent(confidence)} sure, ${percent(probability)} likely after the words before it, looked at “${best[1]}” most (${decimal(best[0])})` : "";
}

// The sentences side by side, where there are several, or something is to be told of one.
function sentences() {
  const place = byId("sentences");
  place.replaceChildren();
  if (!shown || (shown.parts.length < 2 && !shown.parts.some(toCheck))) return;
  const [from, to] = ways().map((name) => language(name).title), inside = document.querySelector('nav a[href="look"]');
  const many = shown.parts.filter(toCheck).length, told = many ? `, ${many === 1 ? "1 has a warning" : `${number(many)} have warnings`}` : "";
  const rows = shown.parts.map((part, i) => {
    const cell = (className, ...content) => make("td", { className, dir: "auto" }, ...content);
    const link = part.words && inside && known[select.value].looks ? [make("a", { href: look(part), textContent: "Look inside", ariaLabel: `Look inside sentence ${i + 1}` })] : [];
    return make("tr", {}, make("th", { scope: "row", textContent: number(i + 1) }), cell("text", part.source), cell("text", part.text),
      cell("sure", make("span", { className: `said ${doubt(part.confidence)}`, textContent: percent(part.confidence) })),
      cell("inside", ...link), ...(many ? [cell("wrong", toCheck(part))] : []));
  });
  const heads = ["", from, to, "Sure", "", ...(many ? ["To check"] : [])].map((textContent) => make(textContent ? "th" : "td", { ...(textContent ? { scope: "col" } : {}), textContent }));
  place.append(make("h2", { textContent: "Sentence by sentence" }), make("p", { className: "quiet", textContent: `${number(shown.parts.length)} ${shown.parts[0].words ? "sentences" : "lines"}${told}.` }),
    make("table", { className: "aligned" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
}

// ------------------------------------------------------------------------------------------------- other words

const alternatives = latest(
  (signal, [sentence, word]) => {
    const { source: text, forced: translation } = shown.parts[sentence];
    const options = { ...terms(), word, top: 8, ...(translation === undefined ? {} : { target: translation }) };
    return ask("align", { model: select.value, ...chosenLanguages(), text, options }, signal);
  },
  ({ answers: [{ others }] }, place) => {
    if (place !== pinned) return; // of a text that is gone by now, or let go
    const [sentence, word] = place;
    const rows = others.map((other) => {
      const node = make("button", { type: "button" },
        make("b", { textContent: other.text, dir: "auto" }),
        make("span", { textContent: percent(other.probability) }),
        make("span", { className: "quiet", textContent: other.translation, dir: "auto" }));
      node.addEventListener("click", () => { forced.set(sentence, other.translation); translate(); target.focus(); });
      return make("li", {}, node);
    });
    byId("others").replaceChildren(
      make("h3", { textContent: `In place of “${shown.parts[sentence].words[word].text}”` }), make("ul", { className: "others" }, ...rows));
  },
);

function choose(place) {
  pinned = String(pinned) === String(place) ? null : place;
  byId("others").replaceChildren();
  pointAt(pinned);
  if (pinned !== null) alternatives(pinned);
}

// The best translations of each sentence, any of which can be chosen.
const best = latest(
  (signal, count, { parts }) => translations(parts.map(({ source: text }) => text), { decoding: { n_best: count } }, signal),
  (records, count, of) => {
    if (of !== shown || count !== Number(byId("best").value)) return;
    const several = records.length > 1;
    const lists = records.flatMap(({ hypotheses }, i) => {
      const items = hypotheses.map(({ text, score }, rank) => {
        const node = button("", () => {
          if (rank) forced.set(i, text);
          else forced.delete(i);
          translate();
          target.focus();
        }, { ariaPressed: String(text === shown.parts[i].text) });
        node.append(make("span", { textContent: text, dir: "auto" }), make("span", { className: "quiet", textContent: nats(score) }));
        return make("li", {}, node);
      });
      return [make("h3", { textContent: `The ${hypotheses.length} best${several ? ` of sentence ${i + 1}` : ""}` }), make("ol", { className: "others whole" }, ...items)];
    });
    const rows = () => [["sentence", "translation", "score"], ...records.flatMap(({ hypotheses }, i) => hypotheses.map(({ text, score }) => [i + 1, text, nats(score)]))];
    byId("more").replaceChildren(...lists, twin("The best translations, with their scores", rows));
  },
);

function listBest() {
  const count = Number(byId("best").value);
  byId("more").replaceChildren();
  if (shown?.parts[0]?.words && count > 1) best(count, shown);
}

function look({ source: text, forced: translation }) {
  return linkTo("look", { model: select.value, ...chosenLanguages(), text, ...(translation === undefined ? {} : { target: translation }) });
}

function links() {
  const parts = [];
  if (forced.size) parts.push(button("Back to the model's own translation", () => { forced = new Map(); translate(); }));
  if (shown?.parts.length === 1 && shown.parts[0].words && known[select.value].looks && document.querySelector('nav a[href="look"]')) {
    parts.push(make("a", { href: look(shown.parts[0]), textContent: "Look inside this translation" }));
  }
  byId("links").replaceChildren(...parts.flatMap((part) => [part, " "]));
}

// ------------------------------------------------------------------------------------------------- copy, clear, swap, open

async function copy() {
  const text = whole();
  try {
    await navigator.clipboard.writeText(text);
  } catch { // only pages of this machine, or over HTTPS, have a clipboard
    const field = make("textarea", { value: text, className: "skip" });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    byId("copy").focus();
  }
  byId("copied").textContent = "Copied";
}

function write(text) {
  forced = new Map();
  source.value = text;
  translate();
  source.focus();
}

const same = (one, other) => {
  const [a, b] = [one, other].map((name) => language(name)).map(({ code, title }) => (code ? new Intl.Locale(code).language : title.toLowerCase()));
  return a === b || language(a).title.toLowerCase() === language(b).title.toLowerCase();
};

// What translates from the target to the source: {model, from_language, to}; null where nothing does.
function back() {
  const [from, to] = ways();
  for (const model of [known[select.value], ...Object.values(known)]) {
    if (!model.languages || !("align" in model.verbs)) continue;
    const directions = Object.entries(model.targets ?? { [model.languages[0]]: [model.languages[1]] });
    for (const [source_, targets] of directions) {
      const found = targets.find((each) => same(each, from));
      if (same(source_, to) && found) return { model: model.name, from_language: source_, to: found };
    }
  }
  return null;
}

function swap() {
  const { model, ...other } = back(), text = shown ? whole() : source.value;
  select.value = model;
  offer(known[model], other);
  languages();
  write(text);
}

async function open() {
  const [file] = byId("open").files;
  byId("open").value = "";
  if (!file) return;
  try {
    const data = new Uint8Array(await file.arrayBuffer()), wide = { "255,254": "utf-16le", "254,255": "utf-16be" }[data.slice(0, 2)];
    write(new TextDecoder(wide ?? "utf-8", { fatal: true }).decode(data).replaceAll("\r\n", "\n"));
  } catch {
    byId("count").textContent = `${file.name} is no text in UTF-8 or UTF-16: save it as one.`;
    byId("count").classList.add("wrong");
  }
}

byId("copy").addEventListener("click", copy);
byId("clear").addEventListener("click", () => write(""));
byId("swap").addEventListener("click", swap);
byId("open").addEventListener("change", open);
const KEYS = { KeyC: "copy", KeyX: "clear", KeyS: "swap" };
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && pinned !== null) choose(pinned);
  const node = event.altKey && !event.ctrlKey && !event.metaKey && KEYS[event.code] ? byId(KEYS[event.code]) : null;
  if (!node || node.hidden) return;
  event.preventDefault();
  node.click();
});
const soon = later(150, translate);
source.addEventListener("input", () => {
  forced = new Map();
  tally();
  if (!source.value.trim()) translate();
  soon();
});
byId("best").addEventListener("change", () => { remember({ best: byId("best").value }); listBest(); });
byId("best").value = state().best ?? 1;
source.value = state().text ?? known[select.value].example;
for (const [key, value] of Object.entries(state())) if (/^target\d*$/.test(key)) forced.set(Number(key.slice(6)), value);
offer(known[select.value], state());
languages();
translate();
