// Two panes: translated as one types; a word of the translation shows what it looked at, and what could stand there.
import { ask, button, byId, chosenModel, language, later, latest, linkTo, make, models, percent, remember, state, twin } from "./common.js";
import { chosenLanguages, offer, onLanguages } from "./languages.js";

const LINES = 1, LONG = 2000; // longer texts are translated line by line, without going into words
const AT_ONCE = 128; // lines
const known = await models();
const source = byId("source"), target = byId("target");
let shown = null; // the answer of /api/align
let pinned = null; // the number of a word of it
let forced = state().target ?? null; // a translation to go through in place of the model's own

const select = chosenModel(() => { offer(known[select.value], chosenLanguages()); changed(); });
onLanguages(changed);

function changed() {
  forced = null;
  languages();
  translate();
}

function languages() {
  const own = known[select.value].languages ?? ["Source", "Translation"];
  const { from_language: from = own[0], to = own[1] } = chosenLanguages();
  for (const [label, node, name] of [["from", source, from], ["to", target, to]]) {
    const { code, title } = language(name);
    node.lang = code;
    byId(label).textContent = title;
  }
}

const lines = () => source.value.split("\n");
const nats = (score) => score.toFixed(3).replace(/^-(0\.0+)$/, "$1");
const several = () => lines().length > LINES || source.value.length > LONG;

const asked = latest(
  async (signal) => {
    const asked = { model: select.value, ...chosenLanguages() }, text = source.value;
    if (!text.trim() || asked.to === "") return null;
    if (several()) {
      const inputs = lines().filter((line) => line.trim()), whole = [];
      while (whole.length < inputs.length) {
        const next = inputs.slice(whole.length, whole.length + AT_ONCE);
        whole.push(...(await ask("translate", { ...asked, inputs: next }, signal)).answers);
      }
      return { whole };
    }
    const options = forced === null ? {} : { target: forced };
    const { answers: [found] } = await ask("align", { ...asked, text, options }, signal);
    return { found };
  },
  (answer) => {
    [shown, pinned] = [answer?.found ?? null, null];
    byId("others").replaceChildren();
    if (shown) words();
    else target.textContent = answer ? byLine(answer.whole) : "";
    pointAt(null);
    listBest();
    links();
  },
);

// The empty lines between those that were translated stay.
function byLine(answers) {
  const rest = [...answers];
  return lines().map((line) => (line.trim() ? rest.shift()?.text ?? "" : "")).join("\n");
}

function translate() {
  remember({ from_language: null, to: null, model: select.value, ...chosenLanguages(), text: source.value, target: forced });
  asked();
}

function words() {
  byId("sure").textContent = shown.calibrated ? `sure; the whole ${percent(shown.confidence)}` : "likely (not calibrated)";
  const buttons = shown.words.map((word, place) => {
    const doubt = word.confidence < 0.4 ? " unsure" : word.confidence < 0.8 ? " doubtful" : "";
    // No <button>: words in one would not stand in the order of their script, and could not be selected from within.
    const node = make("span", {
      className: `said${doubt}`, textContent: word.text, title: `${percent(word.confidence)} sure`, role: "button", tabIndex: 0, ariaPressed: "false",
    });
    node.addEventListener("pointerenter", () => pointAt(place));
    node.addEventListener("pointerleave", () => pointAt(pinned));
    node.addEventListener("focus", () => pointAt(place));
    node.addEventListener("blur", () => pointAt(pinned));
    node.addEventListener("click", () => getSelection().isCollapsed && choose(place));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(place);
    });
    return node;
  });
  // Spaces as the text has them: none between characters of a script without spaces.
  const parts = [];
  let at = 0;
  for (const [place, node] of buttons.entries()) {
    const begin = shown.text.indexOf(shown.words[place].text, at);
    if (begin > at) parts.push(shown.text.slice(at, begin));
    parts.push(node);
    at = Math.max(at, begin) + shown.words[place].text.length;
  }
  target.replaceChildren(...parts);
}

// Lights the source words that a word of the translation looked at.
function pointAt(place) {
  const heard = byId("heard");
  if (!source.hidden) heard.style.minHeight = `${source.getBoundingClientRect().height}px`; // so that no word moves from under the pointer
  heard.hidden = place === null || !shown;
  source.hidden = !heard.hidden;
  for (const [i, node] of target.querySelectorAll(".said").entries()) node.ariaPressed = String(i === pinned);
  byId("aside").textContent = "";
  if (heard.hidden) return;
  const { text, confidence, probability, source: shares } = shown.words[place];
  heard.replaceChildren(...shown.source.flatMap((word, i) => {
    const node = make("span", { className: "said", textContent: word, title: percent(shares[i]) });
    node.style.setProperty("--share", shares[i]);
    return [node, " "];
  }));
  const [best] = shares.map((share, i) => [share, shown.source[i]]).sort((a, b) => b[0] - a[0]);
  byId("aside").textContent = best ? `“${text}”, ${percent(confidence)} sure, ${percent(probability)} likely after the words before it, looked at “${best[1]}” most (${percent(best[0])})` : "";
}

const alternatives = latest(
  (signal, place) => {
    const options = { word: place, top: 8, ...(forced === null ? {} : { target: forced }) };
    return ask("align", { model: select.value, ...chosenLanguages(), text: source.value, options }, signal);
  },
  ({ answers: [{ others }] }, place) => {
    if (place !== pinned) return; // of a text that is gone by now, or let go
    const rows = others.map((other) => {
      const node = make("button", { type: "button" },
        make("b", { textContent: other.text, dir: "auto" }),
        make("span", { textContent: percent(other.probability) }),
        make("span", { className: "quiet", textContent: other.translation, dir: "auto" }));
      node.addEventListener("click", () => { forced = other.translation; translate(); target.focus(); });
      return make("li", {}, node);
    });
    byId("others").replaceChildren(
      make("h3", { textContent: `In place of “${shown.words[place].text}”` }), make("ul", { className: "others" }, ...rows));
  },
);

function choose(place) {
  pinned = pinned === place ? null : place;
  byId("others").replaceChildren();
  pointAt(pinned);
  if (pinned !== null) alternatives(place);
}

const best = latest(
  (signal, count) => ask("translate", { model: select.value, ...chosenLanguages(), text: source.value, options: { decoding: { n_best: count } } }, signal),
  ({ answers: [{ hypotheses }] }, count) => {
    if (!shown || count !== Number(byId("best").value)) return;
    const rows = () => [["translation", "score"], ...hypotheses.map(({ text, score }) => [text, nats(score)])];
    byId("more").replaceChildren(
      make("h3", { textContent: `The ${hypotheses.length} best` }),
      make("ol", {}, ...hypotheses.map(({ text, score }) => make("li", { dir: "auto" }, text, " ", make("span", { className: "quiet", textContent: nats(score) })))),
      twin("The best translations, with their scores", rows));
  },
);

function listBest() {
  const count = Number(byId("best").value);
  byId("more").replaceChildren();
  if (shown && count > 1) best(count);
}

function links() {
  const parts = [];
  if (forced !== null) parts.push(button("Back to the model's own translation", () => { forced = null; translate(); }));
  if (shown && known[select.value].looks && document.querySelector('nav a[href="look"]')) {
    const words = { model: select.value, ...chosenLanguages(), text: source.value, ...(forced === null ? {} : { target: forced }) };
    parts.push(make("a", { href: linkTo("look", words), textContent: "Look inside this translation" }));
  }
  byId("links").replaceChildren(...parts.flatMap((part) => [part, " "]));
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && pinned !== null) choose(pinned);
});
const soon = later(150, translate);
source.addEventListener("input", () => { forced = null; soon(); });
byId("best").addEventListener("change", () => { remember({ best: byId("best").value }); listBest(); });
byId("best").value = state().best ?? 1;
source.value = state().text ?? known[select.value].example;
offer(known[select.value], state());
languages();
translate();
