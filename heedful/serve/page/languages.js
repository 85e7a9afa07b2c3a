// The selects of languages.html, which are there for a model of several languages alone.
import { byId, language, make } from "./common.js";

const from = byId("from_language"), to = byId("to_language");
let targets = null; // of each source

function fill(select, names, wanted) {
  select.replaceChildren(...names.map((name) => make("option", { value: name, textContent: language(name).title || "Choose one" })));
  select.value = names.includes(wanted) ? wanted : names[0];
}

// A model's own languages are chosen unless it has those that are `wanted`.
export function offer(model, wanted) {
  targets = model.targets;
  const sources = Object.keys(targets ?? {}), [source, target] = model.languages ?? [];
  from.parentElement.hidden = sources.length < 2;
  to.parentElement.hidden = !targets;
  if (!targets) return;
  fill(from, sources, sources.includes(wanted.from_language) ? wanted.from_language : source);
  aim(wanted.to || target);
}

// What the source that is chosen is translated to; "" where that has to be chosen first.
function aim(wanted) {
  const names = targets[from.value];
  fill(to, wanted === "" ? ["", ...names] : names, wanted);
}

// What a question says of them.
export const chosenLanguages = () => (targets ? { from_language: from.value, to: to.value } : {});

from.addEventListener("change", () => aim(to.value));

export function onLanguages(changed) {
  for (const select of [from, to]) select.addEventListener("change", changed);
}
