// The page's weights, and its selection, which the address keeps.
// T queries (rows), S keys (columns). A map is a Float32Array of T * S weights, row by row.
"use strict";

const view = JSON.parse(document.getElementById("view").textContent);
const MEAN = -1; // the index that selects the mean of all layers or heads
const MOST_LINES = 400;
const ROW = 30; // pixels; list items have the same height in page.css
const VIEWS = {
  flow: "Flow", heads: "Heads", matrix: "Matrix", ...(view.steps ? { steps: "Steps" } : {}), ...(view.live ? { walk: "Walk" } : {}),
};
const KINDS = { cross: "Cross", encoder: "Encoder self", decoder: "Decoder self", self: "Self" };
const TEXTS = { source: "Source", target: "Target", produced: "Output", both: "Source, then target" };

const EXPLAINED = {
  flow: "A line goes from a token that looks (a query) to one that it looks at (a key): the thicker it is, the larger the attention weight. The weights of a query sum up to 1.",
  heads: "Each small map is a head, one of several attentions that a layer computes side by side. Its rows are queries, its columns are keys: the darker a cell, the larger its weight. The words below it say what the head seems to do, and how clearly (1 at most).",
  matrix: "Rows are the tokens that look (queries), columns those that are looked at (keys): the darker a cell, the larger the attention weight. The weights of a row sum up to 1.",
  steps: "The text as it was made, one token a step: the higher a bar, the likelier the model found that token after those before it. Entropy says how open a step was: 0 bits if one token was certain, 1 bit more for each doubling of equally likely ones.",
  walk: "All numbers of one query of one head, from what comes into the layer to what the head adds to it.",
};
const ENTROPY = " Entropy says how spread the weights of a query are: 0 bits if it looks at one key alone, 1 bit more for each doubling of keys that it looks at alike.";

const byId = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};
const quoted = (token) => make("q", {}, make("bdi", { textContent: token }));
const range = (n) => [...Array(n).keys()];
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

const kinds = Object.keys(KINDS).filter((kind) => view.layers.some((layer) => layer.kind === kind));
const special = new Set([...view.special, ...Object.keys(MARKS)]);
const state = { view: "flow", kind: kinds[0], layer: 0, head: MEAN, q: null, k: null, step: null };
const options = { threshold: 0.05, top: 3, hide: false, stretch: false, sort: "place" };
let hover = null; // {q, k}: a preview, which hides the pinned selection while it lasts
let compared = null; // {layer, head}: a second head, shown beside the chosen one
let repaint = () => {};

// ---------------------------------------------------------------------------------------------- weights

const remembered = new Map();
function once(key, compute) {
  if (!remembered.has(key)) remembered.set(key, compute());
  return remembered.get(key);
}

const layers = () => once(`kind ${state.kind}`, () => view.layers.filter((layer) => layer.kind === state.kind));
const texts = () => ({ rows: view.texts[layers()[0].rows], columns: view.texts[layers()[0].columns] });
const allowed = (q, k) => !layers()[0].causal || k <= q;

function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  return exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
}

function decoded(layer) {
  return once(`weights ${layer.name}`, () => {
    const text = atob(layer.weights), values = once("halves", () => Float32Array.from(range(65536), half));
    const byte = (i) => text.charCodeAt(i);
    return Float32Array.from({ length: text.length / 2 }, (_, i) => values[byte(2 * i) + 256 * byte(2 * i + 1)]);
  });
}

function mean(maps) {
  const total = new Float32Array(maps[0].length);
  for (const map of maps) for (let i = 0; i < total.length; i++) total[i] += map[i] / maps.length;
  return total;
}

function mapOf(layer, head) {
  return once([state.kind, layer, head].join(), () => {
    const chosen = layers();
    if (layer === MEAN) return mean(range(chosen.length).map((i) => mapOf(i, MEAN)));
    const { heads, T, S } = chosen[layer];
    if (head === MEAN) return mean(range(heads).map((i) => mapOf(layer, i)));
    return decoded(chosen[layer]).subarray(head * T * S, (head + 1) * T * S);
  });
}

// The mean entropy of the queries, in bits.
function entropy(layer, head) {
  const map = mapOf(layer, head);
  return once([state.kind, layer, head, "entropy"].join(), () => {
    let total = 0;
    for (const weight of map) if (weight > 0) total -= weight * Math.log2(weight);
    return total / layers()[0].T;
  });
}

function nameOf(layer, head) {
  const chosen = layers();
  if (layer === MEAN) return `Mean of ${chosen.length} layers`;
  if (head === MEAN) return `Layer ${layer}, mean of ${chosen[layer].heads} heads`;
  return `Layer ${layer}, head ${head}`;
}

function labelOf(layer, head) {
  const { name, score } = layers()[layer].labels[head];
  return name === "mixed" ? name : `${name} ${decimal(score)}`;
}

// -------------------------------------------------------------------------------------------- selection

const active = () => hover ?? { q: state.q, k: state.k };

function clamp() {
  const chosen = layers(), { rows, columns } = texts();
  const within = (value, size) => (Number.isInteger(value) && value >= 0 && value < size ? value : null);
  if (state.layer !== MEAN) state.layer = within(state.layer, chosen.length) ?? chosen.length - 1;
  const { heads: n } = chosen[Math.max(state.layer, 0)];
  state.head = state.layer === MEAN ? MEAN : within(state.head, n) ?? (n === 1 ? 0 : MEAN);
  state.q = within(state.q, rows.length);
  state.k = within(state.k, columns.length);
}

function remember() {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value !== null) words.set(key, value === MEAN ? "mean" : value);
  }
  if (location.protocol !== "about:") history.replaceState(null, "", `#${words}`);  // a notebook's frame has no address
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const place = (key) => (words.get(key) === "mean" ? MEAN : words.has(key) ? Number(words.get(key)) : null);
  if (words.get("view") in VIEWS) state.view = words.get("view");
  if (kinds.includes(words.get("kind"))) state.kind = words.get("kind");
  state.layer = place("layer") ?? layers().length - 1;
  state.head = place("head") ?? MEAN;
  state.q = place("q");
  state.step = place("step");
  state.k = place("k");
}

function choose(changes) {
  if ("kind" in changes) Object.assign(state, { q: null, k: null, layer: Infinity }), (compared = null);
  Object.assign(state, changes);
  hover = null;
  build();
}

function preview(cell) {
  hover = cell;
  repaint();
  numbers();
}

function pin(cell) {
  Object.assign(state, cell);
  remember();
  repaint();
  numbers();
}

const toggle = (side, index) => pin({ [side]: state[side] === index ? null : index });

// Arrow keys move to the nearest item in that direction; for Tab the group is one stop.
function roving(group, items) {
  const middle = (item) => {
    const box = (item.closest("li") ?? item).getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const first = items.find((item) => item.ariaPressed === "true") ?? items[0];
  for (const item of items) item.tabIndex = item === first ? 0 : -1;
  group.addEventListener("focusin", (event) => {
    if (!items.includes(event.target)) return;
    for (const item of items) item.tabIndex = item === event.target ? 0 : -1;
  });
  group.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || !items.includes(event.target)) return;
    event.preventDefault();
    const [x, y] = middle(event.target);
    let best = null, least = Infinity;
    for (const item of items) {
      const [dx, dy] = [middle(item)[0] - x, middle(item)[1] - y];
      const ahead = dx * step[0] + dy * step[1], aside = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
      if (ahead > 1 && ahead + 3 * aside < least) [best, least] = [item, ahead + 3 * aside];
    }
    best?.focus();
  });
}
