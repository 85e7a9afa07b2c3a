// A text that is continued as one watches; any of its tokens shows the ten that were likeliest there.
import { ask, byId, chosenModel, latest, make, models, number, percent, remember, state, stream, trouble } from "./common.js";
import { likeliest } from "./likeliest.js";
import { options } from "./sampling.js";

const known = await models();
const select = chosenModel(() => {});
const prompt = byId("prompt"), written = byId("written");
let pieces = []; // {text, token, logprob} as they came
let begun = ""; // what they continue
let running = null;

async function write() {
  running?.abort();
  const own = (running = new AbortController());
  [pieces, begun] = [[], prompt.value];
  remember({ model: select.value, text: prompt.value });
  written.replaceChildren(make("span", { className: "given", textContent: begun }));
  byId("chances").replaceChildren();
  byId("stop").disabled = false;
  const started = performance.now();
  trouble(null);
  try {
    for await (const piece of stream(streams(), { model: select.value, text: begun, options: options() }, own.signal)) {
      if (piece.token !== null || piece.text) show(piece);
      const seconds = (performance.now() - started) / 1000;
      byId("count").textContent = `${pieces.length} tokens, ${number(Math.round(pieces.length / seconds))} a second`;
    }
  } catch (error) {
    if (error.name !== "AbortError") trouble(error);
  }
  if (own === running) byId("stop").disabled = true;
}

const streams = () => known[select.value].streams;

function show(piece) {
  const place = pieces.push(piece) - 1;
  const node = make("span", { className: "piece", textContent: piece.text, tabIndex: place ? -1 : 0, role: "button" });
  node.title = `${percent(Math.exp(piece.logprob))} likely`;
  node.addEventListener("click", () => chances(place));
  node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") chances(place);
    else if (step) written.querySelectorAll(".piece")[place + step]?.focus();
    else return;
    event.preventDefault();
  });
  written.append(node);
}

const chances = latest(
  (signal, place) => {
    for (const [i, node] of written.querySelectorAll(".piece").entries()) node.classList.toggle("chosen", i === place);
    const chosen = pieces.slice(0, place).map(({ token }) => token).filter((token) => token !== null);
    const asked = { chosen, first: chosen.length, most: 1, sampling: options().sampling };
    return ask("steps", { model: select.value, text: begun, options: asked }, signal);
  },
  ({ answers: [{ steps: [step] }] }, place) => {
    byId("chances").replaceChildren(...likeliest(step, ({ text }) => {
      prompt.value = begun + pieces.slice(0, place).map((each) => each.text).join("") + text;
      write();
    }));
  },
);

byId("go").addEventListener("click", write);
byId("stop").addEventListener("click", () => { running?.abort(); byId("stop").disabled = true; });
prompt.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && write());
prompt.value = state().text ?? known[select.value].example;
