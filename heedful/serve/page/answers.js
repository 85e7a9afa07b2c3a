// What an answer of a verb comes to, as text.
import { percent } from "./common.js";

const listed = (name, scores, of) => scores.slice(0, 5).map((one) => `${one[name]} ${percent(one[of])}`).join(", ");

const TOLD = {
  translate: ([{ text }]) => text,
  summarise: ([{ text }]) => text,
  generate: ([{ prompt, text }]) => prompt + text,
  chat: ([{ content }]) => content,
  classify: ([{ labels, score }]) => (labels ? listed("label", labels, "score") : String(score)),
  answer: ([{ answers }]) => answers.map(({ text, score }) => `${text} ${percent(score)}`).join("\n"),
  tag: ([{ words }]) => words.map(({ word, label }) => `${word}/${label}`).join(" "),
  fill: (masks) => masks.map(({ candidates }) => listed("token", candidates, "score")).join("\n"),
  parse: ([{ tree }]) => tree,
};

export function told(verb, found) {
  const records = Array.isArray(found) ? found : [found];
  return TOLD[verb]?.(records) || JSON.stringify(records[0], null, 1).slice(0, 2000);
}
