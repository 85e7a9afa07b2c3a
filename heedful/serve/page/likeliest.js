// The ten tokens that were likeliest at a place in a text, as a table: `go` is called with the one that is chosen instead.
import { bits, make, percent, twin } from "./common.js";

export function likeliest(step, go) {
  const rows = () => [["token", "probability", "after the settings"],
    ...step.top.map(({ piece, before, after }) => [piece, before.toFixed(4), after ? after.toFixed(4) : "cut"])];
  const lines = step.top.map((each) => {
    const bar = make("i");
    bar.style.width = `${100 * each.before}%`;
    const instead = make("button", { type: "button", className: "said", textContent: each.piece, title: "Go on from this one instead" });
    instead.addEventListener("click", () => go(each));
    const line = make("tr", {}, make("td", {}, instead), make("td", {}, bar), make("td", { textContent: percent(each.before) }));
    line.className = each.after ? "" : "quiet";
    return line;
  });
  return [
    make("h2", { textContent: "The likeliest here" }),
    make("p", { className: "quiet", textContent: `Choose one to go on from it instead. Entropy ${bits(step.entropy)}; grey: cut by the settings.` }),
    make("table", { className: "bars" }, make("tbody", {}, ...lines)),
    twin("The likeliest tokens at this place", rows),
  ];
}
