// Terms and their translations, for each pair of languages, in two columns. They are kept in this browser alone, and sent
// with each text.
import { byId, button, language, later, make, number } from "./common.js";

const MOST = 256; // terms of a question
let key = "", rows = [], soon = () => {};

const full = () => rows.filter(([term, translation]) => term.trim() && translation.trim());

// What a question says of them.
export const terms = () => (full().length ? { glossary: full() } : {});

// Shows the terms of these languages; `changed` is called when they are others.
export function glossary(model, from, to, changed) {
  const box = byId("glossary"), own = `heedful glossary ${from} ${to}`;
  box.hidden = !model.verbs.align.options.includes("glossary");
  soon = later(300, changed);
  if (key === own && !box.hidden) return;
  key = own;
  rows = box.hidden ? [] : kept();
  draw([from, to]);
}

function kept() {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? [];
  } catch { // the browser keeps nothing, or something else
    return [];
  }
}

function keep() {
  try {
    localStorage.setItem(key, JSON.stringify(full()));
  } catch { /* then the terms last as long as the page */ }
  say();
  soon();
}

const say = () => {
  const count = full().length;
  byId("glossary").querySelector("summary").textContent = count ? `Glossary (${number(count)} ${count === 1 ? "term" : "terms"})` : "Glossary";
};

function draw(names) {
  const field = (i, side) => {
    const node = make("input", { type: "text", value: rows[i]?.[side] ?? "", dir: "auto", spellcheck: false, maxLength: 200, ariaLabel: `${side ? "Translation of term" : "Term"} ${i + 1}` });
    node.addEventListener("input", () => {
      const last = i === rows.length;
      (rows[i] ??= ["", ""])[side] = node.value;
      if (last) node.closest("tr").append(removed(i));
      if (last && rows.length < MOST) body.append(row(i + 1));
      keep();
    });
    node.addEventListener("paste", (event) => {
      const lines = event.clipboardData.getData("text").split(/\r?\n/).filter((line) => line.includes("\t"));
      if (!lines.length) return;
      event.preventDefault();
      rows.splice(i, rows[i]?.some((text) => text) ? 0 : 1, ...lines.map((line) => line.split("\t").slice(0, 2).map((text) => text.trim())));
      rows = rows.slice(0, MOST);
      draw(names);
      keep();
    });
    return node;
  };
  const removed = (i) => make("td", {}, button("Remove", () => {
    rows.splice(i, 1);
    draw(names);
    keep();
    byId("terms").querySelectorAll("input")[2 * i].focus();
  }, { ariaLabel: `Remove term ${i + 1}` }));
  const row = (i) => make("tr", {}, make("td", {}, field(i, 0)), make("td", {}, field(i, 1)), ...(i < rows.length ? [removed(i)] : []));
  const body = make("tbody", {}, ...Array.from({ length: Math.min(rows.length + 1, MOST) }, (_, i) => row(i)));
  const heads = names.map((name) => make("th", { scope: "col", textContent: language(name).title }));
  byId("terms").replaceChildren(make("table", { className: "terms" }, make("thead", {}, make("tr", {}, ...heads, make("td"))), body));
  say();
}
