// Numbers, tables, downloads and controls; and the start of the page.

// A table of bars; `act` is called with the entry that is chosen.
function bars(entries, chosen, act = null) {
  const most = entries.sort((a, b) => b.weight - a.weight).slice(0, 8), rest = entries.slice(8);
  const line = (word, weight, className) => {
    const bar = make("i");
    bar.style.width = `${100 * Math.min(weight, 1)}%`;
    return make("tr", { className }, make("td", {}, word), make("td", {}, bar), make("td", { textContent: decimal(weight) }));
  };
  const word = (entry) => {
    const name = make("bdi", { textContent: entry.name });
    if (!act) return name;
    const button = make("button", { type: "button", className: "token" }, name);
    button.addEventListener("click", () => act(entry));
    return button;
  };
  const lines = most.map((entry) => line(word(entry), entry.weight, entry.index === chosen ? "chosen" : ""));
  if (rest.length && !act) lines.push(line(`${rest.length} ${rest.length > 1 ? "others" : "other"}`, sum(rest.map(({ weight }) => weight)), "quiet"));
  return make("table", { className: "bars weights" }, make("tbody", {}, ...lines));
}

function numbers() {
  if (state.view === "steps") return stepNumbers();
  if (state.view === "walk") return walkNumbers();
  const { q, k } = active(), { rows, columns } = texts(), S = columns.length;
  const map = mapOf(state.layer, state.head), chosen = layers(), parts = [];
  parts.push(make("h2", { textContent: nameOf(state.layer, state.head) }));
  if (state.layer !== MEAN) parts.push(make("code", { textContent: chosen[state.layer].name }));
  const facts = [];
  if (state.head !== MEAN) facts.push(["pattern", labelOf(state.layer, state.head)]);
  facts.push(["entropy", `${decimal(entropy(state.layer, state.head))} of ${bits(Math.log2(S))}`]);
  if (q !== null && k !== null) facts.push(["weight", allowed(q, k) ? decimal(map[q * S + k]) : "not allowed"]);
  parts.push(make("dl", {}, ...facts.flatMap(([name, value]) =>
    [make("dt", { textContent: name }), make("dd", { textContent: value })])));
  if (q !== null) {
    parts.push(make("h3", {}, quoted(rows[q]), " looks at"));
    if (chosen[0].rows === "produced") {
      parts.push(make("p", { className: "quiet" }, "The decoder had just read ", quoted(view.texts.target[q]), "."));
    }
    const keys = range(S).filter((i) => allowed(q, i));
    parts.push(bars(keys.map((i) => ({ name: columns[i], weight: map[q * S + i], index: i })), k));
  }
  if (k !== null) {
    parts.push(make("h3", {}, quoted(columns[k]), " is looked at by"));
    const queries = range(rows.length).filter((i) => allowed(i, k));
    parts.push(bars(queries.map((i) => ({ name: rows[i], weight: map[i * S + k], index: i })), q));
  }
  if (q === null && k === null) {
    parts.push(make("p", { className: "quiet", textContent: "Choose a token or a cell to see its numbers." }));
  }
  if (q !== null && q === state.q) parts.push(...otherHeads(q, k));
  byId("numbers").replaceChildren(...parts);
}

// The weight of each head in one cell: of the chosen key, or of the key with this query's largest weight.
function otherHeads(q, k) {
  const S = texts().columns.length, map = mapOf(state.layer, state.head);
  const key = k ?? range(S).reduce((a, b) => (map[q * S + b] > map[q * S + a] ? b : a));
  const all = layers().flatMap(({ heads: n }, layer) => range(n).map((head) => (
    { name: `${layer}.${head} ${layers()[layer].labels[head].name}`, weight: mapOf(layer, head)[q * S + key], index: `${layer}.${head}`, layer, head })));
  if (all.length < 2) return [];
  const go = ({ layer, head }) => {
    choose({ layer, head });
    byId("numbers").querySelector(".chosen .token")?.focus();
  };
  return [make("h3", {}, quoted(texts().columns[key]), " in every head"),
    make("p", { className: "quiet", textContent: `Layer and head${all.length > 8 ? `, of ${all.length} the 8 that look there most` : ""}. Choose one to see it.` }),
    bars(all, `${state.layer}.${state.head}`, go)];
}

// Rows of strings for the table and the CSV; the first is the heading.
function tabular(digits) {
  if (state.view === "steps") return stepTable(digits);
  if (state.view === "walk") return walkTable(digits);
  if (state.view === "heads") {
    const head = (layer, i) => [
      String(layer), String(i), layers()[layer].labels[i].name, layers()[layer].labels[i].score.toFixed(3),
      entropy(layer, i).toFixed(3),
    ];
    const all = layers().flatMap((layer, i) => range(layer.heads).map((j) => head(i, j)));
    if (options.sort === "entropy") all.sort((a, b) => a[4] - b[4]);
    return [["layer", "head", "pattern", "score", "entropy (bits)"], ...all];
  }
  const { rows, columns } = texts(), S = columns.length, map = mapOf(state.layer, state.head);
  const cell = (q, k) => (allowed(q, k) ? map[q * S + k].toFixed(digits) : "");
  return [["", ...columns], ...rows.map((row, q) => [row, ...range(S).map((k) => cell(q, k))])];
}

const captionOf = () => ({ heads: "All heads", steps: "All steps", walk: "Every number of this head and query" })[state.view]
  ?? `${nameOf(state.layer, state.head)}: queries down, keys across`;

function table() {
  byId("table").replaceChildren();
  if (!byId("twin").open) return;
  const [heading, ...body] = tabular(3);
  const th = (text, scope) => (text ? make("th", { textContent: text, scope, dir: "auto" }) : make("td"));
  byId("table").append(make("table", {},
    make("caption", { className: "quiet", textContent: captionOf() }),
    make("thead", {}, make("tr", {}, ...heading.map((text) => th(text, "col")))),
    make("tbody", {}, ...body.map(([first, ...rest]) =>
      make("tr", {}, th(first, "row"), ...rest.map((text) => make("td", { textContent: text })))))));
}

function download(name, text, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function csv() {
  // A spreadsheet would evaluate a token that begins like a formula.
  const safe = (text) => (/^[=+\-@].*\D/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text);
  const lines = tabular(5).map((line) => line.map((text) => `"${safe(text).replaceAll('"', '""')}"`).join(","));
  const name = ["steps", "walk"].includes(state.view) ? state.view : `${state.kind}-${nameOf(state.layer, state.head)}`;
  download(`${name}.csv`.replace(/[ ,]+/g, "-").toLowerCase(),
    `${lines.join("\r\n")}\r\n`, "text/csv");
}

// Pharaoh's format: i-j for source word i and target word j, without special tokens.
function alignment() {
  const { rows, columns } = texts(), S = columns.length, map = mapOf(state.layer, state.head);
  const words = (tokens) => range(tokens.length).filter((i) => !special.has(tokens[i]));
  const keys = words(columns);
  const pairs = words(rows).map((q, j) => {
    const best = keys.reduce((a, b) => (map[q * S + b] > map[q * S + a] ? b : a), keys[0]);
    return best !== undefined && map[q * S + best] >= options.threshold ? `${keys.indexOf(best)}-${j}` : "";
  });
  download("alignment.txt", `${pairs.filter(Boolean).join(" ")}\n`, "text/plain");
}

// --------------------------------------------------------------------------------------------- controls

function select(node, choices, value) {
  node.replaceChildren(...choices.map(([key, text]) => make("option", { value: key, textContent: text })));
  node.value = value;
}

function controls() {
  const chosen = layers();
  const layerChoices = chosen.map((_, i) => [i, `Layer ${i}`]);
  if (chosen.length > 1) layerChoices.push([MEAN, "Mean of layers"]);
  select(byId("layer"), layerChoices, state.layer);
  const headChoices = state.layer === MEAN ? []
    : range(chosen[state.layer].heads).map((i) => [i, `Head ${i}: ${labelOf(state.layer, i)}`]);
  if (headChoices.length !== 1) headChoices.unshift([MEAN, "Mean of heads"]);
  select(byId("head"), headChoices, state.head);
  byId("head").disabled = state.layer === MEAN;
  for (const radio of document.querySelectorAll("#controls input")) radio.checked = state[radio.name] === radio.value;
}

function check(text, name) {
  const box = make("input", { type: "checkbox", checked: options[name] });
  box.addEventListener("change", () => { options[name] = box.checked; picture(); });
  return make("label", {}, box, text);
}

function optionBar() {
  const top = make("select"), sort = make("select");
  select(top, [[1, "the strongest"], [3, "the 3 strongest"], [5, "the 5 strongest"], [Infinity, "all"]], options.top);
  top.addEventListener("change", () => { options.top = Number(top.value); repaint(); });
  const value = make("output", { textContent: decimal(options.threshold) });
  const slider = make("input", { type: "range", min: 0, max: 0.5, step: 0.01, value: options.threshold });
  slider.addEventListener("input", () => {
    options.threshold = Number(slider.value);
    value.textContent = decimal(options.threshold);
    repaint();
  });
  select(sort, [["place", "by layer"], ["entropy", "by entropy"]], options.sort);
  sort.addEventListener("change", () => { options.sort = sort.value; picture(); });
  const bar = {
    flow: () => [make("label", {}, "Lines for each query ", top), make("label", {}, "from weight ", slider, value),
      check("Hide special tokens", "hide")],
    heads: () => [make("label", {}, "Sort ", sort), check("Stretch colours to the largest weight", "stretch")],
    matrix: () => [check("Stretch colours to the largest weight", "stretch")],
    steps: stepOptions,
    walk: () => [],
  }[state.view]();
  byId("options").replaceChildren(...bar);
}

function picture() {
  byId("picture").replaceChildren();
  byId("large").replaceChildren();
  byId("note").textContent = "";
  ({ flow, heads, matrix, steps, ...(typeof walk === "undefined" ? {} : { walk }) })[state.view](byId("picture"));
  repaint();
  numbers();
  table();
}

// What the view shows, and the marks among its tokens.
function explain() {
  const { rows, columns } = texts(), marks = Object.keys(MARKS).filter((mark) => [...rows, ...columns].includes(mark));
  const parts = marks.flatMap((mark) => [" ", make("q", { textContent: mark }), ` ${MARKS[mark]}.`]);
  const entropy = ["steps", "walk"].includes(state.view) ? "" : ENTROPY;
  byId("explained").replaceChildren(EXPLAINED[state.view], entropy, ...parts);
}

function build() {
  clamp();
  remember();
  document.body.dataset.view = state.view;
  controls();
  explain();
  optionBar();
  const buttons = [["Download CSV", csv]];
  if (state.view === "flow" && state.kind === "cross") buttons.push(["Download alignment (i-j)", alignment]);
  byId("downloads").replaceChildren(...buttons.map(([text, act]) => {
    const button = make("button", { type: "button", className: "button", textContent: text });
    button.addEventListener("click", act);
    return button;
  }));
  picture();
}

function radios(place, name, choices) {
  place.append(...choices.map(([value, text]) => {
    const radio = make("input", { type: "radio", name, value });
    radio.addEventListener("change", () => choose({ [name]: value }));
    return make("label", {}, radio, text);
  }));
}

radios(byId("views"), "view", Object.entries(VIEWS));
radios(byId("kinds"), "kind", kinds.map((kind) => [kind, KINDS[kind]]));
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("layer").addEventListener("change", (event) => choose({ layer: Number(event.target.value) }));
byId("head").addEventListener("change", (event) => choose({ head: Number(event.target.value) }));
byId("twin").addEventListener("toggle", table);
window.addEventListener("hashchange", () => { recall(); build(); });
window.addEventListener("resize", () => { if (state.view !== "flow") picture(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  hover = null;
  pin({ q: null, k: null });
});
recall();
build();
