// Curves over each other, as SVG: hovering or the arrow keys read their values; and a copy that stands alone.
import { drawn, make, number } from "./common.js";

const COLOURS = ["--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5", "--curve-6"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "12 4", "1 4"]; // never colour alone
const [RIGHT, BOTTOM, TOP] = [16, 46, 30];
export const MOST = COLOURS.length; // curves at a time

// At most about `count` round numbers from `low` to `high`.
function ticks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => each >= raw);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

// The same where equal distances are equal ratios.
function ratioTicks(low, high, count) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  for (const times of [[1, 2, 5], [1, 3], [1]]) {
    const made = Array.from({ length: last - first + 1 }, (_, i) => times.map((each) => Number(`${each}e${first + i}`))).flat();
    const inside = made.filter((tick) => tick >= low && tick <= high);
    if (inside.length <= count + 2) return inside.length > 1 ? inside : ticks(low, high, count);
  }
  return ticks(Math.log10(low), Math.log10(high), count).map((tick) => 10 ** tick);
}

const label = (tick) => (tick && (Math.abs(tick) < 1e-4 || Math.abs(tick) >= 1e7) ? tick.toExponential() : tick.toLocaleString("en", { maximumSignificantDigits: 6 }));

function span(values) {
  const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

function stroked(node, i) {
  node.style.stroke = `var(${COLOURS[i]})`;
  return node;
}

// `lines` are lists of [x, y], one for each of `names`, in these `colours` (by their numbers); `measure` and `over` are the
// names of the axes, and `format` writes a value. `told` gets what stands under the cursor, as text, and where that
// is ("" and null: the cursor is gone); `at` is where it was when these curves were drawn before.
export function plot({ names, lines, colours, measure, over, log, format, width, at }, told) {
  const points = lines.flat(), scale = log ? Math.log10 : (y) => y;
  const height = Math.round(Math.min(Math.max(width * 0.36, 240), 460));
  const [left, right] = span(points.map(([x]) => x)), [least, most] = span(points.map(([, y]) => scale(y)));
  const [low, high] = [least - 0.04 * (most - least), most + 0.04 * (most - least)];
  const heights = log ? ratioTicks(10 ** low, 10 ** high, 6) : ticks(low, high, 6);
  const margin = 14 + 7.5 * Math.max(...heights.map((tick) => label(tick).length));
  const across = (x) => margin + ((x - left) / (right - left)) * (width - margin - RIGHT);
  const up = (y) => height - BOTTOM - ((scale(y) - low) / (high - low)) * (height - BOTTOM - TOP);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", tabindex: 0, role: "slider", "aria-label": `${measure} of ${names.join(", ")} by ${over}`, "aria-valuemin": left, "aria-valuemax": right, "aria-valuenow": left });
  for (const tick of heights) {
    svg.append(drawn("line", { x1: margin, x2: width - RIGHT, y1: up(tick), y2: up(tick), class: "grid" }));
    svg.append(drawn("text", { x: margin - 8, y: up(tick) + 4, "text-anchor": "end" }, label(tick)));
  }
  for (const tick of ticks(left, right, Math.min(8, width / 70))) svg.append(drawn("text", { x: across(tick), y: height - BOTTOM + 20, "text-anchor": "middle" }, label(tick)));
  svg.append(drawn("text", { x: 0, y: 14, class: "axis" }, `${measure}${log ? ", logarithmic" : ""}`));
  svg.append(drawn("text", { x: width - RIGHT, y: height - 6, "text-anchor": "end", class: "axis" }, over));
  lines.forEach((line, i) => {
    const path = line.map(([x, y]) => `${across(x).toFixed(1)},${up(y).toFixed(1)}`).join(" ");
    svg.append(stroked(drawn("polyline", { points: path, class: "curve", "stroke-dasharray": DASHES[colours[i]] }), colours[i]));
    if (line.length === 1) svg.append(stroked(drawn("circle", { cx: across(line[0][0]), cy: up(line[0][1]), r: 3, class: "dot" }), colours[i]));
  });
  const cursor = drawn("g", { class: "cursor" });
  svg.append(cursor);

  const stops = [...new Set(points.map(([x]) => x))].sort((a, b) => a - b);
  const near = (line, x) => line.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best), line[0]);
  const within = (line, x) => line.length && x >= line[0][0] - (right - left) / 50 && x <= line.at(-1)[0] + (right - left) / 50;
  const readAt = (x) => {
    at = x;
    const found = lines.flatMap((line, i) => (within(line, x) ? [[i, ...near(line, x)]] : []));
    cursor.replaceChildren(drawn("line", { x1: across(x), x2: across(x), y1: TOP, y2: height - BOTTOM }),
      ...found.map(([i, dot, y]) => stroked(drawn("circle", { cx: across(dot), cy: up(y), r: 4, class: "dot" }), colours[i])));
    const text = `${over.replace(/s$/, "")} ${number(x)}: ${found.map(([i, , y]) => `${names[i]} ${format(y)}`).join(", ") || "nothing measured"}`;
    svg.setAttribute("aria-valuenow", x);
    svg.setAttribute("aria-valuetext", text);
    told(text, x);
  };
  const leave = () => {
    if (!svg.isConnected) return;
    at = null;
    cursor.replaceChildren();
    told("", null);
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), x = left + ((((event.clientX - box.left) / box.width) * width - margin) / (width - margin - RIGHT)) * (right - left);
    readAt(stops.reduce((best, stop) => (Math.abs(stop - x) < Math.abs(best - x) ? stop : best), stops[0]));
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const here = at === null ? -1 : stops.findIndex((stop) => stop >= at), last = stops.length - 1;
    const next = { ArrowRight: here + 1, ArrowUp: here + 1, ArrowLeft: here - 1, ArrowDown: here - 1, PageUp: here + 10, PageDown: here - 10, Home: 0, End: last }[event.key];
    if (event.key === "Escape") leave();
    if (next === undefined) return;
    event.preventDefault();
    readAt(stops[Math.min(Math.max(next, 0), last)]);
  });
  if (at !== null) readAt(Math.min(Math.max(at, left), right));
  const keys = names.map((name, i) => make("span", {},
    drawn("svg", { viewBox: "0 0 30 8", class: "key-line" }, stroked(drawn("line", { x1: 0, x2: 30, y1: 4, y2: 4, "stroke-dasharray": DASHES[colours[i]], "stroke-width": 2 }), colours[i])),
    make("bdi", { textContent: name }), ...(lines[i].length ? [] : [" (not measured)"])));
  return make("div", {}, svg, make("p", { className: "legend" }, ...keys));
}

// A copy with its colours and its legend inside, which any program draws as here.
export function standalone(svg, names, colours) {
  const styles = getComputedStyle(document.documentElement), colour = (name) => styles.getPropertyValue(name).trim();
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number), whole = height + 10 + 20 * names.length;
  const copy = svg.cloneNode(true);
  copy.querySelector(".cursor").remove();
  names.forEach((name, i) => {
    const y = height + 14 + 20 * i;
    copy.append(stroked(drawn("line", { x1: 16, x2: 46, y1: y - 4, y2: y - 4, "stroke-dasharray": DASHES[colours[i]], "stroke-width": 2 }), colours[i]), drawn("text", { x: 54, y }, name));
  });
  for (const node of copy.querySelectorAll("*")) {
    const name = /var\((--[\w-]+)\)/.exec(node.style.stroke)?.[1];
    if (name) node.setAttribute("stroke", colour(name));
    if (node.matches(".curve")) for (const [key, value] of [["fill", "none"], ["stroke-width", 2]]) node.setAttribute(key, value);
    if (node.matches(".dot")) node.setAttribute("fill", node.getAttribute("stroke"));
    if (node.matches(".grid")) node.setAttribute("stroke", colour("--line"));
    if (node.matches("text")) for (const [key, value] of [["fill", colour("--soft")], ["font-size", 12], ["font-family", "sans-serif"]]) node.setAttribute(key, value);
    node.removeAttribute("style");
  }
  for (const key of ["tabindex", "role", "aria-label", "aria-valuemin", "aria-valuemax", "aria-valuenow", "aria-valuetext"]) copy.removeAttribute(key);
  copy.prepend(drawn("rect", { width, height: whole, fill: colour("--paper") }));
  for (const [key, value] of [["width", width], ["height", whole], ["viewBox", `0 0 ${width} ${whole}`]]) copy.setAttribute(key, value);
  return new XMLSerializer().serializeToString(copy);
}
