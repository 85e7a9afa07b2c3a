// Answers put in order: by dragging, by their numbers, or by buttons. What is decided is sent, and kept, at once.

import { Refusal, byId, decimal, get, make, reached } from "./common.js";

let shown = null; // what the server asks now
let levels = []; // groups of numbers of answers from 0, the best first
let typed = []; // the groups that were typed so far
let alike = false; // whether the next number joins the last group

const who = () => byId("who").value.trim() || "someone";

async function send(path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await reached(path, { method: "POST", headers, body: JSON.stringify(body) });
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, said.error);
  return said;
}

async function told(work) {
  byId("trouble").hidden = true;
  try {
    show(await work());
  } catch (error) {
    if (error instanceof Refusal && error.status === 409) show(await get(next()));
    byId("trouble").textContent = error.message;
    byId("trouble").hidden = false;
  }
}

const next = () => `rank/next?${new URLSearchParams({ who: who() })}`;
const judge = () => told(() => send("rank/judge", decided(levels)));
const skip = () => told(() => send("rank/judge", decided([])));
const undo = () => told(() => send("rank/undo", { who: who() }));
const decided = (order) => ({ who: who(), prompt: shown.prompt, candidates: shown.candidates, order });

function show(asked) {
  shown = asked;
  byId("far").textContent = `${asked.done} of ${asked.prompts} prompts`;
  byId("asked").hidden = asked.over;
  byId("over").hidden = !asked.over;
  if (asked.over) {
    const { items, kendall_tau: tau, same_order: same } = asked.agreement;
    const agreed = tau === undefined ? "" : ` On ${items} prompts of several people: Kendall's tau ${decimal(tau)}`;
    const pairs = same === undefined || !agreed ? "" : `, ${Math.round(100 * same)} % of pairs alike`;
    byId("end").textContent = `All is judged, and kept in ${asked.out}.${agreed}${pairs}${agreed ? "." : ""}`;
    return;
  }
  const turns = typeof asked.shown === "string" ? [asked.shown] : asked.shown.flatMap(({ role, content }) => [make("b", { textContent: role }), content]);
  byId("prompt").replaceChildren(...turns);
  levels = asked.candidates.map((_, number) => [number]);
  [typed, alike] = [[], false];
  draw();
}

function draw(focus = null) {
  const boxes = levels.map((level, rank) => {
    const box = make("li", { className: "level" }, ...level.map((number) => candidate(number)));
    box.dataset.rank = rank;
    return box;
  });
  byId("order").replaceChildren(...boxes);
  if (focus !== null) byId("order").querySelector(`[data-number="${focus.number}"] [data-move="${focus.move}"]`)?.focus();
}

function candidate(number) {
  const moves = [["up", "↑", "better"], ["down", "↓", "worse"], ["join", "=", "as good as the one above"]].map(([move, sign, says]) => {
    const button = make("button", { type: "button", className: "button", textContent: sign });
    button.dataset.move = move;
    button.setAttribute("aria-label", `Answer ${number + 1}: ${says}`);
    button.addEventListener("click", () => moved(number, move));
    return button;
  });
  const box = make(
    "div",
    { className: "candidate", draggable: true },
    make("span", { className: "number", textContent: number + 1 }),
    make("span", { className: "said", textContent: shown.candidates[number] || "(nothing)" }),
    make("span", { className: "moves" }, ...moves),
  );
  box.dataset.number = number;
  return box;
}

const placed = (number) => levels.findIndex((level) => level.includes(number));

function without(number) {
  return levels.map((level) => level.filter((own) => own !== number)).filter((level) => level.length);
}

function moved(number, move) {
  const rank = placed(number);
  const alone = levels[rank].length === 1;
  if (move === "join" && rank > 0) {
    const target = levels[rank - 1][0];
    levels = without(number);
    levels[placed(target)].push(number);
  } else if (move !== "join") {
    const to = move === "up" ? (alone ? rank - 1 : rank) : rank + 1;
    levels = without(number);
    levels.splice(Math.max(0, Math.min(levels.length, to)), 0, [number]);
  }
  draw({ number, move });
}

// --------------------------------------------------------------------------------------------- dragging

let held = null;

byId("order").addEventListener("dragstart", (event) => {
  held = Number(event.target.closest(".candidate")?.dataset.number ?? NaN);
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", String(held));
});
byId("order").addEventListener("dragover", (event) => {
  if (held !== null) event.preventDefault();
});
byId("order").addEventListener("drop", (event) => {
  event.preventDefault();
  if (held === null || Number.isNaN(held)) return;
  const onto = event.target.closest(".candidate");
  const number = held;
  held = null;
  if (onto && Number(onto.dataset.number) !== number) {
    // In the middle of another answer it is as good; in its upper or lower third it is better or worse.
    const { top, height } = onto.getBoundingClientRect();
    const share = (event.clientY - top) / height;
    const target = Number(onto.dataset.number);
    levels = without(number);
    const rank = placed(target);
    if (share < 1 / 3) levels.splice(rank, 0, [number]);
    else if (share > 2 / 3) levels.splice(rank + 1, 0, [number]);
    else levels[rank].push(number);
    draw();
  }
});
byId("order").addEventListener("dragend", () => (held = null));

// --------------------------------------------------------------------------------------------- keys

function typedNumber(number) {
  if (number >= shown.candidates.length || typed.flat().includes(number)) return;
  if (alike && typed.length) typed[typed.length - 1].push(number);
  else typed.push([number]);
  alike = false;
  arrange();
}

function arrange() {
  const rest = shown.candidates.map((_, number) => number).filter((number) => !typed.flat().includes(number));
  levels = [...typed.map((level) => [...level]), ...rest.map((number) => [number])];
  draw();
}

document.addEventListener("keydown", (event) => {
  const writing = event.target instanceof HTMLInputElement;
  if (writing || event.ctrlKey || event.metaKey || event.altKey || shown === null) return;
  const key = event.key.toLowerCase();
  if (key === "u") undo();
  else if (shown.over) return;
  else if (/^[1-9]$/.test(key)) typedNumber(Number(key) - 1);
  else if (key === "=") alike = true;
  else if (key === "s") skip();
  else if (key === "enter" && !(event.target instanceof HTMLButtonElement)) judge();
  else if (key === "backspace" && typed.length) {
    typed.at(-1).pop();
    typed = typed.filter((level) => level.length);
    arrange();
  } else return;
  event.preventDefault();
});

byId("judge").addEventListener("click", judge);
byId("skip").addEventListener("click", skip);
byId("undo").addEventListener("click", undo);
byId("back").addEventListener("click", undo);
byId("who").addEventListener("change", () => told(() => get(next())));
told(() => get(next()));
