// A card for each model: what it does, its scores, and an example that runs with one click.
import { told } from "./answers.js";
import { ask, button, byId, language, latest, linkTo, make, models, number, score, scoreName } from "./common.js";

const reads = (model, kind) => Object.values(model.verbs).some((verb) => verb.reads === kind);
const VIEWS = {
  translate: (model) => "align" in model.verbs && model.languages,
  write: (model) => model.streams && !model.converses,
  chat: (model) => model.converses,
  pictures: (model) => reads(model, "pictures"),
  sounds: (model) => reads(model, "sounds"),
  look: (model) => model.looks && !reads(model, "sounds"),
};
const MOST = 8; // directions that are named
const NAMES = { translate: "Translate", write: "Write", chat: "Chat", pictures: "Pictures", sounds: "Sounds", look: "Look inside" };

function scored([name, value]) {
  return make("div", {}, make("dt", { textContent: scoreName(name) }), make("dd", { textContent: score(name, value) }));
}

function directions({ languages, targets }) {
  const title = (name) => language(name).title;
  const ways = Object.entries(targets ?? { [languages[0]]: [languages[1]] }).flatMap(([from, each]) => each.map((to) => `${title(from)} to ${title(to)}`));
  return ways.length <= MOST ? ways.join(", ") : `${Object.keys(targets).length} languages`;
}

function card(model) {
  const { name, task, parameters, engine } = model;
  const what = model.languages ? `translates ${directions(model)}` : model.does;
  const size = parameters >= 1e6 ? `${number(parameters / 1e6)} million` : number(parameters);
  const node = make("article", { className: "card" },
    make("h2", { textContent: name }),
    make("p", { textContent: `This model ${what}.` }),
    make("p", { className: "quiet", textContent: `${task}, ${size} parameters, engine ${engine}` }));
  if (model.outdated) node.append(make("p", { className: "quiet", textContent: "The run has other weights by now: start the server again to have them answer." }));
  const scores = Object.entries(model.scores);
  if (scores.length) node.append(make("dl", { className: "scores" }, ...scores.map(scored)));
  const verb = Object.keys(model.verbs).find((each) => model.verbs[each].reads === "texts" && !model.verbs[each].options.includes("contexts"));
  const ready = model.languages?.[1] !== ""; // it need not be told what to translate to
  if (verb && model.example && ready) node.append(trial(model, verb));
  const views = Object.keys(VIEWS).filter((view) => VIEWS[view](model) && document.querySelector(`nav a[href="${view}"]`));
  node.append(make("p", { className: "links" }, ...views.map((view) =>
    make("a", { href: linkTo(view, { model: name }), textContent: NAMES[view] }))));
  return node;
}

function trial(model, verb) {
  const input = make("input", { type: "text", value: model.example, ariaLabel: `A text for ${model.name}` });
  const answer = make("output", { dir: "auto" });
  const run = latest(
    (signal) => {
      answer.textContent = "…";
      const options = model.verbs[verb].options.includes("tokens") ? { options: { tokens: 60 } } : {};
      return ask(verb, { model: model.name, text: input.value, ...options }, signal).catch((error) => {
        if (error.name !== "AbortError") answer.textContent = "";
        throw error;
      });
    },
    ({ answers: [first] }) => { answer.textContent = told(verb, first); },
  );
  input.addEventListener("keydown", (event) => event.key === "Enter" && run());
  return make("div", {}, make("div", { className: "try" }, input, button("Run", run, { className: "button primary" })), answer);
}

byId("cards").append(...Object.values(await models()).map(card));
