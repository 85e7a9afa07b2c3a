// A text step by step: the likeliest tokens of each step, what the settings cut off, and, with a server, "what if".

const SETTINGS = { temperature: ["Temperature", 1, 0, 3, 0.1], top_k: ["Top k", 0, 0, 1000, 1], top_p: ["Top p", 1, 0, 1, 0.05] };
const FATES = {
  lives: "lives on", "fell out": "fell out: none of what could follow was among the best", ended: "ended", unfinished: "came to the limit",
};
const told = { steps: view.steps ?? [], chosen: [], sampling: {}, beam: null, tree: null, trouble: "" };

function steps(picture) {
  state.step = Math.min(Math.max(state.step ?? 0, 0), told.steps.length - 1);
  const buttons = told.steps.map(({ said }, i) => {
    const bar = make("i");
    bar.style.height = `${Math.max(2, 100 * said.before)}%`;
    const button = make("button", { type: "button", className: "step", title: `${said.piece} (${i}): ${percent(said.before)}` },
      make("span", { className: "tower" }, bar), make("bdi", { textContent: said.piece }));
    button.ariaPressed = String(i === state.step);
    button.addEventListener("click", () => {
      state.step = i;
      remember();
      for (const [j, other] of buttons.entries()) other.ariaPressed = String(i === j);
      numbers();
      table();
    });
    if (i < told.chosen.length) button.classList.add("forced");
    return button;
  });
  picture.append(make("div", { className: "steps" }, ...buttons));
  roving(picture, buttons);
  const parts = ["The higher the bar, the likelier was what was said."];
  if (told.chosen.length) parts.push(`The first ${told.chosen.length} were forced.`);
  if (told.trouble) parts.push(told.trouble);
  picture.append(make("p", { className: "quiet", textContent: parts.join(" ") }));
  if (told.tree) picture.append(beamTree(told.tree));
  repaint = () => {};
}

// The hypotheses that a beam search kept, a column for each step; choosing one forces it.
function beamTree(nodes) {
  const [WIDE, TALL] = [104, 26], columns = [];
  nodes.forEach((node, i) => { (columns[node.step] ??= []).push(i); });
  const place = new Map(columns.flatMap((column) => column
    .sort((a, b) => nodes[b].total - nodes[a].total).map((i, row) => [i, [nodes[i].step * WIDE, row * TALL]])));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const size = [columns.length * WIDE, Math.max(...columns.map(({ length }) => length)) * TALL];
  svg.setAttribute("width", size[0]);
  svg.setAttribute("height", size[1]);
  svg.setAttribute("aria-hidden", "true");
  const best = new Set();
  for (let i = nodes.findIndex(({ rank }) => rank === 0); i !== null && i >= 0; i = nodes[i].parent) best.add(i);
  nodes.forEach(({ parent }, i) => {
    if (parent === null) return;
    const [[x, y], [left, top]] = [place.get(i), place.get(parent)];
    const path = document.createElementNS(svg.namespaceURI, "path");
    const [from, to] = [left + 16, x]; // from the end of the token
    path.setAttribute("d", `M${from} ${top + 12}C${to - 16} ${top + 12} ${to - 32} ${y + 12} ${to} ${y + 12}`);
    path.setAttribute("class", best.has(i) ? "best" : nodes[i].fate === "fell out" ? "dead" : "");
    svg.append(path);
  });
  const buttons = nodes.map((node, i) => {
    const what = `${node.piece}: ${nats(node.total)}, ${FATES[node.fate]}${node.rank === null ? "" : `, number ${node.rank + 1} of all with ${nats(node.score)}`}`;
    const button = make("button", { type: "button", className: `token ${node.fate === "fell out" ? "dead" : ""} ${best.has(i) ? "best" : ""}`, title: what, ariaLabel: what });
    button.append(make("bdi", { textContent: node.piece }), ...(node.rank === null ? [] : [make("small", { textContent: ` ${node.rank + 1}` })]));
    const [x, y] = place.get(i);
    Object.assign(button.style, { left: `${x}px`, top: `${y}px`, maxWidth: `${WIDE - 20}px` });
    button.disabled = node.parent === null || node.fate === "ended";
    button.addEventListener("click", () => {
      const path = [];
      for (let at = i; nodes[at].parent !== null; at = nodes[at].parent) path.unshift(nodes[at].token);
      told.chosen = path;
      tellSteps();
    });
    return button;
  });
  const tree = make("div", { className: "tree" }, svg, ...buttons);
  Object.assign(tree.style, { width: `${size[0]}px`, height: `${size[1]}px` });
  const live = buttons.filter(({ disabled }) => !disabled);
  if (live.length) roving(tree, live);
  const region = make("div", { className: "tree-region", role: "region", ariaLabel: "The beam search as a tree" }, tree);
  return make("div", {}, make("h3", { textContent: `A beam of ${told.beam}` }), region,
    make("p", { className: "quiet", textContent: "Grey fell out of the beam; numbers are the places of those that ended. Choose a token to go on from its beginning." }));
}

function stepNumbers() {
  const step = told.steps[state.step], most = Math.max(...step.top.map(({ before, after }) => Math.max(before, after)), 1e-9);
  const shaped = step.top.some(({ before, after }) => Math.abs(before - after) > 1e-4);
  const lines = step.top.map(({ token, piece, before, after }) => {
    const bars = [["before", before], ...(shaped ? [["after", after]] : [])].map(([className, share]) => {
      const bar = make("i", { className });
      bar.style.width = `${(100 * share) / most}%`;
      return bar;
    });
    const word = make("bdi", { textContent: piece });
    const cell = make("td", {}, view.live?.steps ? whatIf(word, token) : word);
    const className = [token === step.said.token ? "chosen" : "", after ? "" : "quiet"].join(" ");
    const shares = shaped ? `${percent(before)} → ${after ? percent(after) : "cut"}` : percent(before);
    return make("tr", { className }, cell, make("td", {}, ...bars), make("td", { textContent: shares }));
  });
  const fact = (name, value) => [make("dt", { textContent: name }), make("dd", { textContent: value })];
  byId("numbers").replaceChildren(
    make("h2", {}, `Step ${state.step}: `, quoted(step.said.piece)),
    make("dl", {}, ...fact("entropy", bits(step.entropy)), ...fact("so far", nats(step.total))),
    make("h3", { textContent: shaped ? "The likeliest, before and after the settings" : "The likeliest here" }),
    make("table", { className: shaped ? "bars wide" : "bars" }, make("tbody", {}, ...lines)),
    ...(view.live?.steps ? [make("p", { className: "quiet", textContent: "Choose another to go on from it." })] : []));
}

function whatIf(word, token) {
  const button = make("button", { type: "button", className: "token", title: "Go on from this one instead" }, word);
  button.addEventListener("click", () => {
    told.chosen = [...told.steps.slice(0, state.step).map(({ said }) => said.token), token];
    tellSteps();
  });
  return button;
}

async function tellSteps() {
  const { model, text, languages, steps } = view.live;
  const body = { model, text, ...languages, options: { chosen: told.chosen, most: 64, sampling: told.sampling, ...(told.beam ? { beam: told.beam } : {}) } };
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(steps, { method: "POST", headers, body: JSON.stringify(body) });
  const found = await response.json();
  told.trouble = response.ok ? "" : found.error.message;
  if (response.ok) ({ steps: told.steps, tree: told.tree = null } = found.answers[0]);
  build();
}

function stepOptions() {
  if (!view.live?.steps) return [];
  const fields = Object.entries(SETTINGS).map(([name, [label, value, min, max, step]]) => {
    const input = make("input", { type: "number", min, max, step, value: told.sampling[name] ?? value });
    input.addEventListener("change", () => { told.sampling[name] = Number(input.value); tellSteps(); });
    return make("label", {}, label, input);
  });
  if (view.live.beam) {
    const wide = make("select");
    select(wide, [["", "none"], ...[2, 3, 4, 5, 8, 12].map((width) => [width, String(width)])], told.beam ?? "");
    wide.addEventListener("change", () => { told.beam = Number(wide.value) || null; tellSteps(); });
    fields.push(make("label", {}, "Beam as a tree", wide));
  }
  if (!told.chosen.length) return fields;
  const back = make("button", { type: "button", className: "button", textContent: "Back to what the model said" });
  back.addEventListener("click", () => { told.chosen = []; tellSteps(); });
  return [...fields, back];
}

function stepTable(digits) {
  const line = ({ said, entropy, total, top }, i) => [
    String(i), said.piece, said.before.toFixed(digits), entropy.toFixed(digits), total.toFixed(digits),
    top.map(({ piece, before }) => `${piece} ${before.toFixed(digits)}`).join("  "),
  ];
  return [["step", "said", "probability", "entropy (bits)", "so far (nats)", "the likeliest"], ...told.steps.map(line)];
}
