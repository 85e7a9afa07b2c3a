// A conversation with a model; any token of its answers shows the ten that were likeliest there.
import { ask, byId, chosenModel, download, later, latest, make, models, number, percent, remember, state, stream, trouble } from "./common.js";
import { likeliest } from "./likeliest.js";
import { options } from "./sampling.js";

const KEPT = "heedful chat"; // in the browser's session: a conversation outlives a reload, and not the tab
const known = await models();
const select = chosenModel(restart);
const [turns, says, system] = ["turns", "says", "system"].map(byId);
let said = []; // {role, content}, of an answer with its pieces: {text, token, logprob}
let running = null;

// The messages before the turn of this number.
function before(number) {
  const first = system.value.trim() ? [{ role: "system", content: system.value }] : [];
  return [...first, ...said.slice(0, number).filter(({ content }) => content).map(({ role, content }) => ({ role, content }))];
}

function keep() {
  const { value: model } = select;
  sessionStorage.setItem(KEPT, JSON.stringify({ model, system: system.value, said: said.map(({ node, ...turn }) => turn) }));
}

function shown(turn) {
  const mine = turn.role === "user";
  const text = make("div", { className: mine ? "says" : "says written", dir: "auto" });
  turn.node = make("section", { className: `turn ${turn.role}` }, make("h2", { textContent: mine ? "You" : select.value }), text);
  if (mine) text.textContent = turn.content;
  else for (const piece of turn.pieces) text.append(node(turn, piece, turn.pieces.indexOf(piece)));
  turns.append(turn.node);
  return text;
}

function node(turn, piece, place) {
  const made = make("span", { className: "piece", textContent: piece.text, tabIndex: place ? -1 : 0, role: "button" });
  made.title = `${percent(Math.exp(piece.logprob))} likely`;
  const soon = later(120, () => made.matches(":hover") && chances(turn, place));
  made.addEventListener("mouseenter", soon);
  made.addEventListener("focus", () => chances(turn, place));
  made.addEventListener("click", () => made.focus());
  made.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") byId("chances").querySelector("button")?.focus();
    else if (step) turn.node.querySelectorAll(".piece")[place + step]?.focus();
    else return;
    event.preventDefault();
  });
  return made;
}

async function send() {
  const content = says.value.trim();
  if (!content) return;
  running?.abort();
  const mine = { role: "user", content };
  said.push(mine);
  shown(mine);
  says.value = "";
  await answer([]);
  if (said.at(-1) !== mine) return;
  forget(said.indexOf(mine)); // there is no answer: it may be asked again
  says.value ||= content;
  keep();
}

// The next turn, which begins with these pieces.
async function answer(pieces) {
  running?.abort();
  const own = (running = new AbortController());
  const turn = { role: "assistant", content: "", pieces: [] };
  const messages = before(said.length);
  said.push(turn);
  const text = shown(turn), started = performance.now();
  const add = (piece) => {
    if (piece.token === null && !piece.text) return;
    text.append(node(turn, piece, turn.pieces.push(piece) - 1));
    turn.content += piece.text;
  };
  pieces.forEach(add);
  byId("chances").replaceChildren();
  busy(true);
  remember({ model: select.value });
  trouble(null);
  try {
    const begun = turn.pieces.map(({ token }) => token).filter((token) => token !== null);
    const body = { model: select.value, messages, options: options(), ...(begun.length ? { begun } : {}) };
    for await (const piece of stream(known[select.value].converses, body, own.signal)) {
      add(piece);
      const seconds = (performance.now() - started) / 1000;
      byId("count").textContent = `${turn.pieces.length} tokens, ${number(Math.round(turn.pieces.length / seconds))} a second`;
    }
  } catch (error) {
    if (error.name !== "AbortError") trouble(error);
  }
  if (!turn.pieces.length) forget(said.indexOf(turn));
  keep();
  if (own === running) busy(false);
}

// While an answer comes, the log waits with being read out.
function busy(is) {
  byId("stop").disabled = !is;
  turns.setAttribute("aria-busy", is);
}

// The turns from this number on.
function forget(number) {
  if (number < 0) return;
  for (const turn of said.splice(number)) turn.node.remove();
}

const chances = latest(
  (signal, turn, place) => {
    for (const each of turns.querySelectorAll(".piece.chosen")) each.classList.remove("chosen");
    turn.node.querySelectorAll(".piece")[place].classList.add("chosen");
    const chosen = turn.pieces.slice(0, place).map(({ token }) => token).filter((token) => token !== null);
    const asked = { chosen, first: chosen.length, most: 1, sampling: options().sampling };
    return ask("steps", { model: select.value, text: JSON.stringify(before(said.indexOf(turn))), options: asked }, signal);
  },
  ({ answers: [{ steps: [step] }] }, turn, place) => {
    byId("chances").replaceChildren(...likeliest(step, ({ token, text, before: chance }) => {
      const kept = turn.pieces.slice(0, place);
      forget(said.indexOf(turn));
      answer([...kept, { text: place ? text : text.trimStart(), token, logprob: Math.log(chance) }]);
    }));
  },
);

function restart() {
  running?.abort();
  forget(0);
  byId("chances").replaceChildren();
  byId("count").textContent = "";
  keep();
}

function restore() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  if (kept?.model !== select.value) return;
  system.value = kept.system;
  byId("first").open = kept.system !== "";
  said = kept.said;
  said.forEach(shown);
}

byId("go").addEventListener("click", send);
byId("stop").addEventListener("click", () => { running?.abort(); busy(false); });
byId("new").addEventListener("click", () => { restart(); says.focus(); });
byId("save").addEventListener("click", () => download("chat.jsonl", `${JSON.stringify({ messages: before(said.length) })}\n`, "application/x-ndjson"));
system.addEventListener("change", keep);
says.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
says.value = state().text ?? known[select.value].example;
restore();
