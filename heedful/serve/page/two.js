// Two models are asked the same, and the words that differ are marked.
import { told } from "./answers.js";
import { ask, byId, latest, make, models } from "./common.js";
import { differing } from "./diff.js";

const TOKENS = 60; // of an answer

const options = (names) => names.map((name) => make("option", { textContent: name }));

// Any text alone is enough to ask this of a model.
const textAlone = ({ verbs }, verb) => verbs[verb]?.reads === "texts" && !verbs[verb].options.includes("contexts");
const verbOf = (model) => Object.keys(model.verbs).find((verb) => textAlone(model, verb));

// The section is shown only where two models have a verb in common.
export async function askTwo() {
  const known = await models();
  const others = (first) => Object.values(known).filter((model) => model.name !== first.name && textAlone(model, verbOf(first)));
  const firsts = Object.values(known).filter((model) => verbOf(model) && others(model).length);
  byId("two").hidden = firsts.length === 0;
  if (!firsts.length) return;
  const choose = () => {
    const first = known[byId("first").value];
    byId("second").replaceChildren(...options(others(first).map(({ name }) => name)));
    byId("question").value ||= first.example;
  };
  const both = latest(
    async (signal) => {
      const names = ["first", "second"].map((id) => byId(id).value), first = known[names[0]], verb = verbOf(first);
      const settings = first.verbs[verb].options.includes("tokens") ? { options: { tokens: TOKENS } } : {};
      const found = await Promise.all(names.map((model) => ask(verb, { model, text: byId("question").value, ...settings }, signal)));
      return { names, texts: found.map(({ answers: [own] }) => told(verb, own)) };
    },
    ({ names, texts }) => {
      const sides = differing(...texts);
      byId("answers").replaceChildren(...names.map((name, i) => make("div", { className: "pane" },
        make("h3", {}, make("bdi", { textContent: name })),
        make("p", { className: "text answer", dir: "auto" }, ...sides[i].map(({ text, differs }) => (differs ? make("mark", { textContent: text }) : text))))));
    },
  );
  byId("first").replaceChildren(...options(firsts.map(({ name }) => name)));
  byId("first").addEventListener("change", choose);
  byId("both").addEventListener("click", both);
  byId("question").addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && both());
  choose();
}
