// All runs of a folder: scores side by side, curves over each other, live while one trains; and two asked the same.
import { told } from "./answers.js";
import { ask, button, byId, csv, download, drawn, get, latest, make, models, remember, state, trouble, twin } from "./common.js";
import { differing } from "./diff.js";

const COLOURS = ["--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5", "--curve-6"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "12 4", "1 4"]; // never colour alone
const HIDDEN = ["step", "epoch", "seconds", "minutes"];
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [960, 340, 56, 34, 10];
const MOST = COLOURS.length; // curves at a time
let runs = [], sorted = { by: "name", down: false };
const read = new Map(); // what was read of a run, by its name
const chosen = () => (state().runs ?? "").split(",").filter((name) => runs.some((run) => run.name === name)).slice(0, MOST);

// ------------------------------------------------------------------------------------------------- list

const number = (value) => (value === null || value === undefined ? "" : Number.isInteger(value) ? value.toLocaleString("en") : Math.abs(value) >= 100 ? value.toLocaleString("en", { maximumFractionDigits: 0 }) : value.toFixed(Math.abs(value) >= 10 ? 1 : 3));

function columns() {
  const scores = [...new Set(runs.flatMap((run) => Object.keys(run.scores)))];
  return [
    ["name", "run", (run) => run.name],
    ["task", "task", (run) => run.task ?? ""],
    ["parameters", "parameters", (run) => run.parameters],
    ["steps", "steps", (run) => run.steps],
    ["minutes", "minutes", (run) => run.minutes],
    ...scores.map((key) => [key, key.replaceAll("_", " "), (run) => run.scores[key]]),
    ["state", "", (run) => run.trouble ?? (run.training ? "training" : run.finished ? "" : "unfinished")],
  ];
}

function list() {
  const all = columns(), [, , value] = all.find(([key]) => key === sorted.by) ?? all[0];
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? "")));
  const rows = [...runs].sort((a, b) => (sorted.down ? -1 : 1) * order(value(a), value(b)));
  const focused = document.activeElement?.dataset?.key;
  const heads = all.map(([key, title]) => {
    const head = make("th", { scope: "col" });
    if (!title) return head;
    const click = make("button", { type: "button", className: "sort", textContent: title });
    click.dataset.key = `sort ${key}`;
    click.addEventListener("click", () => { sorted = { by: key, down: sorted.by === key && !sorted.down }; list(); });
    if (sorted.by === key) head.ariaSort = sorted.down ? "descending" : "ascending";
    head.append(click);
    return head;
  });
  const picked = chosen();
  const body = rows.map((run) => {
    const box = make("input", { type: "checkbox", checked: picked.includes(run.name), disabled: picked.length >= MOST && !picked.includes(run.name) });
    box.dataset.key = `run ${run.name}`;
    box.addEventListener("change", () => {
      remember({ runs: (box.checked ? [...picked, run.name] : picked.filter((name) => name !== run.name)).join(",") });
      list();
      curves();
    });
    const label = make("label", { className: "check" }, box, make("bdi", { textContent: run.name }));
    return make("tr", {}, make("th", { scope: "row" }, label), ...all.slice(1).map(([, , of]) => {
      const found = of(run);
      return make("td", { textContent: typeof found === "number" ? number(found) : found ?? "", className: found === "training" ? "live" : "" });
    }));
  });
  byId("list").replaceChildren(runs.length
    ? make("table", { className: "twin runs" }, make("caption", { textContent: "Choose runs to see their curves." }), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body))
    : make("p", { textContent: "There are no runs in this folder yet." }));
  if (focused) byId("list").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// ------------------------------------------------------------------------------------------------ curves

// Points of a measure: steps or minutes (whose rows tell seconds, or stand between two that do) and values.
function pointsOf({ curve }, measure, over) {
  let seconds = 0;
  return curve.flatMap((row) => {
    seconds = row.seconds ?? seconds;
    const value = row[measure];
    return value === null || value === undefined ? [] : [[over === "step" ? row.step : seconds / 60, value]];
  });
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= raw) ?? raw;
  const made = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9; tick += step) made.push(Number(tick.toPrecision(12)));
  return made;
}

const shown = latest(
  async (signal) => {
    const names = chosen();
    for (const name of names) {
      const run = runs.find((each) => each.name === name);
      if (!read.has(name) || run.training) read.set(name, await get(`/api/runs/${encodeURIComponent(name)}`, signal));
    }
    return names;
  },
  (names) => draw(names),
);
const curves = () => shown();

function draw(names) {
  byId("curves").hidden = names.length === 0;
  if (!names.length) return;
  const all = names.map((name) => read.get(name));
  const measures = [...new Set(all.flatMap(({ curve }) => curve.flatMap(Object.keys)))].filter((key) => !HIDDEN.includes(key));
  const select = byId("measure"), before = select.value || state().measure;
  select.replaceChildren(...measures.map((key) => make("option", { value: key, textContent: key.replaceAll("_", " ") })));
  select.value = measures.includes(before) ? before : measures.find((key) => key === "valid_loss") ?? measures[0] ?? "";
  const measure = select.value, over = byId("over").value, log = byId("log").checked;
  const lines = all.map((run) => pointsOf(run, measure, over).filter(([, y]) => !log || y > 0));
  const points = lines.flat();
  if (points.length) {
    byId("picture").replaceChildren(plot(names, lines, measure, over, log));
  } else {
    byId("picture").replaceChildren(make("p", { textContent: "Nothing has been measured yet." }));
  }
  const rows = () => [["run", over, measure], ...lines.flatMap((line, i) => line.map(([x, y]) => [names[i], String(Number(x.toFixed(3))), String(y)]))];
  byId("saves").replaceChildren(
    button("Download CSV", () => download(`${measure}.csv`, csv(rows()), "text/csv")),
    button("Download SVG", () => download(`${measure}.svg`, standalone(byId("picture").querySelector("svg")), "image/svg+xml")));
  const opened = byId("twin-place").querySelector("details")?.open;
  byId("twin-place").replaceChildren(twin(`${measure} of the chosen runs`, rows));
  if (opened) byId("twin-place").querySelector("details").open = true;
  if (byId("told").dataset.names !== names.join()) tell(names, all);
}

function plot(names, lines, measure, over, log) {
  const points = lines.flat(), scale = (y) => (log ? Math.log10(y) : y);
  const [left, right] = [Math.min(...points.map(([x]) => x)), Math.max(...points.map(([x]) => x))];
  const [low, high] = [Math.min(...points.map(([, y]) => scale(y))), Math.max(...points.map(([, y]) => scale(y)))];
  const place = ([x, y]) => [
    LEFT + ((x - left) / (right - left || 1)) * (WIDTH - LEFT - 16),
    HEIGHT - BOTTOM - ((scale(y) - low) / (high - low || 1)) * (HEIGHT - BOTTOM - TOP),
  ];
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img", "aria-label": `${measure} of ${names.join(", ")}; the table below says the same` });
  for (const tick of ticks(low, high, 5)) {
    const y = place([left, log ? 10 ** tick : tick])[1];
    svg.append(drawn("line", { x1: LEFT, x2: WIDTH - 16, y1: y, y2: y, class: "grid" }));
    svg.append(drawn("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, String(log ? Number((10 ** tick).toPrecision(3)) : tick)));
  }
  for (const tick of ticks(left, right, 8)) svg.append(drawn("text", { x: place([tick, log ? 10 ** low : low])[0], y: HEIGHT - 12, "text-anchor": "middle" }, tick.toLocaleString("en")));
  lines.forEach((line, i) => {
    const path = line.map((point) => place(point).map((each) => each.toFixed(1)).join(",")).join(" ");
    svg.append(drawn("polyline", { points: path, class: "curve", "stroke-dasharray": DASHES[i] }));
    svg.lastChild.style.stroke = `var(${COLOURS[i]})`;
    if (line.length === 1) {
      const [x, y] = place(line[0]);
      svg.append(drawn("circle", { cx: x, cy: y, r: 3 }));
      svg.lastChild.style.fill = `var(${COLOURS[i]})`;
    }
  });
  const cursor = drawn("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "cursor", visibility: "hidden" });
  svg.append(cursor);
  const readAt = (x) => {
    const told = lines.flatMap((line, i) => {
      const nearest = line.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best), line[0]);
      return nearest ? [`${names[i]} ${number(nearest[1])}`] : [];
    });
    const at = place([x, lines.flat()[0][1]])[0];
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    byId("readout").textContent = `${over === "step" ? "step" : "minute"} ${number(x)}: ${told.join(", ")}`;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * WIDTH;
    readAt(Math.min(Math.max(left + ((x - LEFT) / (WIDTH - LEFT - 16)) * (right - left), left), right));
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); byId("readout").textContent = ""; });
  const legend = make("p", { className: "legend" }, ...names.map((name, i) => {
    const key = drawn("svg", { viewBox: "0 0 30 8", class: "key-line" }, drawn("line", { x1: 0, x2: 30, y1: 4, y2: 4, "stroke-dasharray": DASHES[i], "stroke-width": 2 }));
    key.firstChild.style.stroke = `var(${COLOURS[i]})`;
    return make("span", {}, key, make("bdi", { textContent: name }));
  }));
  return make("div", {}, svg, legend);
}

// A copy with its colours inside, which any program draws as here.
function standalone(svg) {
  const copy = svg.cloneNode(true), styles = getComputedStyle(document.documentElement);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  for (const node of copy.querySelectorAll("*")) {
    for (const key of ["stroke", "fill"]) {
      const name = /var\((--[\w-]+)\)/.exec(node.style[key] ?? "")?.[1];
      if (name) node.setAttribute(key, styles.getPropertyValue(name).trim());
    }
    if (node.matches(".curve")) node.setAttribute("fill", "none");
    if (node.matches(".grid")) node.setAttribute("stroke", "#ccc");
    if (node.matches("text")) node.setAttribute("font-size", "12");
    node.removeAttribute("style");
  }
  return copy.outerHTML;
}

function tell(names, all) {
  byId("told").dataset.names = names.join();
  byId("told").replaceChildren(...all.flatMap((run) => [["card", "Card"], ["recipe", "Recipe"]].map(([key, title]) => {
    const text = make("pre", { textContent: run[key] || "There is none yet.", tabIndex: 0 });
    return make("details", {}, make("summary", { textContent: `${title} of ${run.name}` }), text);
  })));
}

for (const [id, event] of [["measure", "change"], ["over", "change"], ["log", "change"]]) {
  byId(id).addEventListener(event, () => {
    const node = byId(id);
    remember({ [id]: node.type === "checkbox" ? (node.checked ? "1" : null) : node.value });
    curves();
  });
}

async function refresh() {
  try {
    ({ runs } = await get("/api/runs"));
    list();
    await curves();
  } catch (error) {
    trouble(error);
  }
}

byId("over").value = state().over ?? "step";
byId("log").checked = state().log === "1";
await refresh();
setInterval(() => {
  if (document.visibilityState === "visible" && runs.some((run) => run.training)) refresh();
}, 2000);

// --------------------------------------------------------------------------------------------- ask two

if (byId("both")) {
  const known = await models();
  const verbOf = (model) => Object.keys(model.verbs).find((verb) => model.verbs[verb].reads === "texts" && !model.verbs[verb].options.includes("contexts"));
  const others = () => {
    const first = known[byId("first").value], verb = verbOf(first);
    const able = Object.values(known).filter((model) => model.name !== first.name && verb && verb in model.verbs);
    byId("second").replaceChildren(...able.map((model) => make("option", { textContent: model.name })));
    byId("both").disabled = able.length === 0;
    byId("question").value ||= first.example;
  };
  const both = latest(
    async (signal) => {
      const verb = verbOf(known[byId("first").value]);
      const names = ["first", "second"].map((id) => byId(id).value);
      const options = known[names[0]].verbs[verb].options.includes("tokens") ? { options: { tokens: 60 } } : {};
      const found = names.map((model) => ask(verb, { model, text: byId("question").value, ...options }, signal));
      return { names, texts: (await Promise.all(found)).map(({ answers: [own] }) => told(verb, own)) };
    },
    ({ names, texts }) => {
      const sides = differing(...texts);
      byId("answers").replaceChildren(...names.map((name, i) => make("div", { className: "pane" }, make("h2", { textContent: name }),
        make("p", { className: "text answer", dir: "auto" }, ...sides[i].map(({ text, differs }) => (differs ? make("mark", { textContent: text }) : text))))));
    },
  );
  byId("first").addEventListener("change", others);
  byId("both").addEventListener("click", both);
  byId("question").addEventListener("keydown", (event) => event.key === "Enter" && both());
  others();
}
