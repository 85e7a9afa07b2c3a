// The fields of sampling.html, which the address keeps.
import { byId, remember, state } from "./common.js";

const FIELDS = ["tokens", "temperature", "top_k", "top_p", "seed"];

for (const name of FIELDS) {
  byId(name).value = state()[name] ?? byId(name).value;
  byId(name).addEventListener("change", () => remember({ [name]: byId(name).value }));
}

export function options() {
  const { tokens, ...sampling } = Object.fromEntries(FIELDS.map((name) => [name, Number(byId(name).value)]));
  return { tokens, sampling };
}
