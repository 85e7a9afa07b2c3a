// All runs: scores side by side, curves over each other, what differs between their recipes; live while one trains.
import { button, byId, csv, date, download, get, later, latest, make, number, remember, score, scoreName, state, table, trouble, twin } from "./common.js";
import { MOST, plot, standalone } from "./plot.js";
import { askTwo } from "./two.js";

const WORDS = ["task", "state"]; // columns of texts
const HIDDEN = ["step", "epoch", "seconds", "minutes", "averaged"];
const AGAIN = 2000; // milliseconds, while a run trains
let runs = null, sorted = { by: "name", down: false }, asking = false;
let drawnRuns = []; // what the pictures show
const cursors = new Map(); // where the picture of a task is read
const read = new Map(); // what was read of a run, by its name

// ------------------------------------------------------------------------------------------------- list

// The chosen runs stand in the address, each name escaped: it may hold a comma.
function chosen() {
  const unescaped = (name) => { try { return decodeURIComponent(name); } catch { return name; } };
  return (state().runs ?? "").split(",").map(unescaped).filter((name) => runs.some((run) => run.name === name)).slice(0, MOST);
}

const stateOf = (run) => (run.training ? "training" : run.trouble ?? (run.finished ? "finished" : "unfinished"));

// Those whose name, task and state have all words of the filter.
function filtered() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => words.every((word) => `${run.name} ${run.task} ${stateOf(run)}`.toLowerCase().includes(word)));
}

function columns() {
  const scores = new Map(); // what most runs have comes first
  for (const key of runs.flatMap((run) => Object.keys(run.scores))) scores.set(key, (scores.get(key) ?? 0) + 1);
  return [
    ["name", "run", (run) => run.name],
    ["task", "task", (run) => run.task],
    ["changed", "last changed", (run) => run.changed],
    ["parameters", "parameters", (run) => run.parameters],
    ["steps", "steps", (run) => run.steps],
    ["minutes", "minutes", (run) => run.minutes],
    ["state", "state", stateOf],
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
  const rows = filtered().sort((a, b) => order(value(a), value(b), sorted.down));
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
      return make("td", { textContent: typeof found !== "number" ? found ?? "" : (key === "changed" ? date : key in run.scores ? (value) => score(key, value) : number)(found), className });
    }));
  });
  byId("list").replaceChildren(runs.length
    ? make("table", { className: "twin runs" }, make("caption", { textContent: `${rows.length < runs.length ? `${number(rows.length)} of ${number(runs.length)} runs. ` : ""}Choose up to ${MOST} to see their curves and what differs between their recipes.` }), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body))
    : make("p", { textContent: "There are no runs yet." }));
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

// A measure by its name; a loss with what it is a mean over, of which tasks have different ones.
const titleOf = (key) => ({ lr: "learning rate", norm: "norm of the gradient" })[key] ?? scoreName(key);
const unitOf = (key, { counted }) => (/loss$/.test(key) && counted ? ` per ${counted.replace(/s\b/, "")}` : "");

function draw() {
  byId("curves").hidden = drawnRuns.length === 0;
  byId("differences").replaceChildren(...differences());
  if (!drawnRuns.length) return;
  const measures = [...new Set(drawnRuns.flatMap(({ curve }) => curve.flatMap(Object.keys)))].filter((key) => !HIDDEN.includes(key));
  const select = byId("measure"), before = state().measure;
  select.replaceChildren(...measures.map((key) => make("option", { value: key, textContent: titleOf(key) })));
  select.value = measures.includes(before) ? before : measures.find((key) => key === "valid_loss") ?? measures[0] ?? "";
  const opened = new Set([...document.querySelectorAll("#pictures section")].filter((each) => each.querySelector("details")?.open).map((each) => each.dataset.task));
  const focused = document.activeElement?.closest("#pictures section")?.dataset.task;
  const tasks = [...new Set(drawnRuns.map(({ task }) => task ?? "unknown task"))];
  byId("pictures").replaceChildren(...tasks.map((task) => make("section", { ariaLabel: task })));
  for (const [i, place] of [...byId("pictures").children].entries()) {
    place.dataset.task = tasks[i];
    picture(place, tasks[i], tasks.length > 1);
    if (opened.has(tasks[i])) place.querySelector("details").open = true;
    if (focused === tasks[i]) place.querySelector(".plot")?.focus();
  }
  tell();
}

// The curves of one task: those of others have other units.
function picture(place, task, several) {
  const colours = [...drawnRuns.keys()].filter((i) => (drawnRuns[i].task ?? "unknown task") === task), own = colours.map((i) => drawnRuns[i]);
  const names = own.map(({ name }) => name), measure = byId("measure").value, over = byId("over").value, log = byId("log").checked;
  const lines = own.map((run) => pointsOf(run, measure, over).filter(([, y]) => !log || y > 0));
  const rows = () => [["run", over, measure], ...lines.flatMap((line, i) => line.map(([x, y]) => [names[i], String(Number(x.toFixed(3))), String(y)]))];
  const readout = make("p", { className: "readout" }), file = several ? `${task}-${measure}` : measure;
  if (several) place.append(make("h2", { textContent: task }));
  if (!lines.some((line) => line.length)) {
    place.append(make("p", { textContent: log ? "Nothing above zero has been measured." : `No ${titleOf(measure)} has been measured.` }));
  } else {
    const told = (text, x) => { readout.textContent = text; cursors.set(task, x); };
    const title = `${titleOf(measure)}${unitOf(measure, own[0])}`, width = Math.round(Math.max(place.clientWidth, 240));
    place.append(plot({ names, lines, colours, measure: title, over: { step: "steps", minutes: "minutes" }[over], log, format: (value) => score(measure, value), width, at: cursors.get(task) ?? null }, told));
  }
  place.append(readout, make("p", {},
    button("Download CSV", () => download(`${file}.csv`, csv(rows()), "text/csv")),
    button("Download SVG", () => download(`${file}.svg`, standalone(place.querySelector(".plot"), names, colours), "image/svg+xml"), { disabled: !lines.some((line) => line.length) })),
    twin(`${titleOf(measure)} of the chosen runs`, rows));
}

// The settings that not all of the chosen runs have alike.
function differences() {
  const own = drawnRuns.filter(({ settings }) => Object.keys(settings).length);
  if (own.length < 2) return [];
  const said = (value) => (value === undefined ? "not there" : typeof value === "string" ? value || '""' : JSON.stringify(value));
  const keys = [...new Set(own.flatMap(({ settings }) => Object.keys(settings)))].filter((key) => new Set(own.map(({ settings }) => said(settings[key]))).size > 1);
  const heading = make("h2", { textContent: "What differs between their recipes" });
  if (!keys.length) return [heading, make("p", { textContent: "Nothing: they are the same." })];
  const region = make("div", { className: "scroll wide recipes", tabIndex: 0, role: "region", ariaLabel: "What differs between the recipes" });
  region.append(table([["setting", ...own.map(({ name }) => name)], ...keys.map((key) => [key, ...own.map(({ settings }) => said(settings[key]))])], `${number(keys.length)} of ${number(new Set(own.flatMap(({ settings }) => Object.keys(settings))).size)} settings`));
  return [heading, region];
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
    cursors.clear();
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
byId("filter").value = state().filter ?? "";
byId("filter").addEventListener("input", () => { remember({ filter: byId("filter").value }); list(); });
await refresh();
let width = byId("pictures").clientWidth;
new ResizeObserver(later(100, () => {
  if (byId("pictures").clientWidth === width) return;
  width = byId("pictures").clientWidth;
  draw();
})).observe(byId("pictures"));
const visible = () => document.visibilityState === "visible";
setInterval(() => visible() && runs?.some((run) => run.training) && refresh(), AGAIN);
document.addEventListener("visibilitychange", () => visible() && refresh());
addEventListener("hashchange", () => { if (runs) { list(); curves(); } });
if (byId("two")) await askTwo();
