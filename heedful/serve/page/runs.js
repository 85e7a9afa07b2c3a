// All runs of a folder: scores side by side, curves over each other, live while one trains.
import { button, byId, csv, download, get, later, latest, make, number, remember, scoreName, state, trouble, twin } from "./common.js";
import { MOST, plot, standalone } from "./plot.js";
import { askTwo } from "./two.js";

const WORDS = ["task", "state"]; // columns of texts
const HIDDEN = ["step", "epoch", "seconds", "minutes", "averaged"];
const AGAIN = 2000; // milliseconds, while a run trains
let runs = null, sorted = { by: "name", down: false }, asking = false;
let drawnRuns = [], cursor = null; // what the picture shows, and where it is read
const read = new Map(); // what was read of a run, by its name

// ------------------------------------------------------------------------------------------------- list

// The chosen runs stand in the address, each name escaped: it may hold a comma.
function chosen() {
  const unescaped = (name) => { try { return decodeURIComponent(name); } catch { return name; } };
  return (state().runs ?? "").split(",").map(unescaped).filter((name) => runs.some((run) => run.name === name)).slice(0, MOST);
}

function columns() {
  const scores = new Map(); // what most runs have comes first
  for (const key of runs.flatMap((run) => Object.keys(run.scores))) scores.set(key, (scores.get(key) ?? 0) + 1);
  return [
    ["name", "run", (run) => run.name],
    ["task", "task", (run) => run.task],
    ["parameters", "parameters", (run) => run.parameters],
    ["steps", "steps", (run) => run.steps],
    ["minutes", "minutes", (run) => run.minutes],
    ["state", "state", (run) => (run.training ? "training" : run.trouble ?? (run.finished ? "finished" : "unfinished"))],
    ...[...scores].sort((a, b) => b[1] - a[1]).map(([key]) => [key, scoreName(key), (run) => run.scores[key]]),
  ];
}

// Numbers before texts; what is not known is last, either way.
function order(a, b, down) {
  const [unknown, other] = [a, b].map((value) => value === null || value === undefined);
  if (unknown || other) return unknown - other;
  const found = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -found : found;
}

function list() {
  const all = columns(), [, , value] = all.find(([key]) => key === sorted.by) ?? all[0];
  const rows = [...runs].sort((a, b) => order(value(a), value(b), sorted.down));
  const focused = document.activeElement?.dataset?.key;
  const heads = all.map(([key, title]) => {
    const click = button(title, () => { sorted = { by: key, down: sorted.by === key && !sorted.down }; list(); }, { className: "sort" });
    click.dataset.key = `sort ${key}`;
    return make("th", { scope: "col", className: WORDS.includes(key) ? "text" : "", ...(sorted.by === key ? { ariaSort: sorted.down ? "descending" : "ascending" } : {}) }, click);
  });
  const picked = chosen();
  const body = rows.map((run) => {
    const box = make("input", { type: "checkbox", checked: picked.includes(run.name), disabled: picked.length >= MOST && !picked.includes(run.name) });
    box.dataset.key = `run ${run.name}`;
    box.addEventListener("change", () => {
      const names = box.checked ? [...picked, run.name] : picked.filter((name) => name !== run.name);
      remember({ runs: names.map(encodeURIComponent).join(",") });
      list();
      curves();
    });
    const label = make("label", { className: "check" }, box, make("bdi", { textContent: run.name }));
    return make("tr", {}, make("th", { scope: "row" }, label), ...all.slice(1).map(([key, , of]) => {
      const found = of(run);
      const className = [WORDS.includes(key) && "text", key === "state" && "state", key === "state" && run.training && "live"].filter(Boolean).join(" ");
      return make("td", { textContent: typeof found === "number" ? number(found) : found ?? "", className });
    }));
  });
  byId("list").replaceChildren(runs.length
    ? make("table", { className: "twin runs" }, make("caption", { textContent: `Choose up to ${MOST} runs to see their curves.` }), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body))
    : make("p", { textContent: "There are no runs in this folder yet." }));
  if (focused) byId("list").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// ------------------------------------------------------------------------------------------------ curves

const pointsOf = ({ curve }, measure, over) => curve.flatMap((row) => {
  const at = row[over === "step" ? "step" : "minutes"], value = row[measure];
  return [at, value].some((each) => each === null || each === undefined) ? [] : [[at, value]];
});

// What is read of a run is read again when its record says another thing.
const curves = latest(
  async (signal) => {
    const records = chosen().map((name) => runs.find((run) => run.name === name));
    for (const record of records) {
      const now = JSON.stringify(record);
      if (read.get(record.name)?.record !== now) read.set(record.name, { record: now, run: await get(`api/runs/${encodeURIComponent(record.name)}`, signal) });
    }
    return records.map(({ name }) => read.get(name).run);
  },
  (found) => {
    const same = found.length === drawnRuns.length && found.every((run, i) => run === drawnRuns[i]);
    drawnRuns = found;
    if (!same) draw();
  },
);

function draw() {
  byId("curves").hidden = drawnRuns.length === 0;
  if (!drawnRuns.length) return;
  const names = drawnRuns.map(({ name }) => name);
  const measures = [...new Set(drawnRuns.flatMap(({ curve }) => curve.flatMap(Object.keys)))].filter((key) => !HIDDEN.includes(key));
  const select = byId("measure"), before = state().measure;
  select.replaceChildren(...measures.map((key) => make("option", { value: key, textContent: key.replaceAll("_", " ") })));
  select.value = measures.includes(before) ? before : measures.find((key) => key === "valid_loss") ?? measures[0] ?? "";
  const measure = select.value, over = byId("over").value, log = byId("log").checked;
  const lines = drawnRuns.map((run) => pointsOf(run, measure, over).filter(([, y]) => !log || y > 0));
  const rows = () => [["run", over, measure], ...lines.flatMap((line, i) => line.map(([x, y]) => [names[i], String(Number(x.toFixed(3))), String(y)]))];
  picture(names, lines, measure, over, log);
  byId("saves").replaceChildren(
    button("Download CSV", () => download(`${measure}.csv`, csv(rows()), "text/csv")),
    button("Download SVG", () => download(`${measure}.svg`, standalone(byId("picture").querySelector(".plot"), names), "image/svg+xml"), { disabled: !lines.some((line) => line.length) }));
  const opened = byId("twin-place").querySelector("details")?.open;
  byId("twin-place").replaceChildren(twin(`${measure} of the chosen runs`, rows));
  if (opened) byId("twin-place").querySelector("details").open = true;
  tell();
}

function picture(names, lines, measure, over, log) {
  const place = byId("picture"), focused = place.contains(document.activeElement), at = cursor;
  if (!lines.some((line) => line.length)) {
    place.replaceChildren(make("p", { textContent: log ? "Nothing above zero has been measured yet." : "Nothing has been measured yet." }));
    return;
  }
  const width = Math.round(Math.max(place.clientWidth, 240));
  const told = (text, x) => { byId("readout").textContent = text; cursor = x; };
  const made = plot({ names, lines, measure: measure.replaceAll("_", " "), over, log, width, at }, told);
  place.replaceChildren(made);
  if (focused) made.querySelector(".plot").focus();
}

function tell() {
  const open = new Set([...byId("told").querySelectorAll("details[open] summary")].map((summary) => summary.textContent));
  byId("told").replaceChildren(...drawnRuns.flatMap((run) => [
    ...(run.trouble ? [make("p", { textContent: `${run.name}: ${run.trouble}`, className: "wrong" })] : []),
    ...[["card", "Card"], ["recipe", "Recipe"]].map(([key, title]) => {
      const summary = make("summary", { textContent: `${title} of ${run.name}` });
      return make("details", { open: open.has(summary.textContent) }, summary, make("pre", { textContent: run[key] || "There is none yet.", tabIndex: 0 }));
    }),
  ]));
}

for (const id of ["measure", "over", "log"]) {
  byId(id).addEventListener("change", () => {
    const node = byId(id);
    remember({ [id]: node.type === "checkbox" ? (node.checked ? "1" : null) : node.value });
    cursor = null;
    byId("readout").textContent = "";
    draw();
  });
}

async function refresh() {
  if (asking) return;
  asking = true;
  try {
    const found = await get("api/runs");
    const same = JSON.stringify(found.runs) === JSON.stringify(runs);
    ({ runs } = found);
    if (!same) list();
    await curves();
  } catch (error) {
    trouble(error);
  } finally {
    asking = false;
  }
}

byId("over").value = state().over === "minutes" ? "minutes" : "step";
byId("log").checked = state().log === "1";
await refresh();
let width = byId("picture").clientWidth;
new ResizeObserver(later(100, () => {
  if (byId("picture").clientWidth === width) return;
  width = byId("picture").clientWidth;
  draw();
})).observe(byId("picture"));
const visible = () => document.visibilityState === "visible";
setInterval(() => visible() && runs?.some((run) => run.training) && refresh(), AGAIN);
document.addEventListener("visibilitychange", () => visible() && refresh());
addEventListener("hashchange", () => { if (runs) { list(); curves(); } });
if (byId("two")) await askTwo();
