// Maps over a picture: each layer and head, or of each thing that was found; choosing a patch asks what it looked at.
import { byId, button, csv, download, latest, make, percent, twin } from "./common.js";

// Matplotlib's inferno, in nine steps.
const HEAT = [
  [0, 0, 4], [31, 12, 72], [85, 15, 109], [136, 34, 106], [186, 54, 85], [227, 89, 51], [249, 140, 10], [249, 201, 50], [252, 255, 164],
];
const EDGE = 520; // pixels of the large map

function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

export function weightsOf({ weights }) {
  const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 2 }, (_, i) => half(view.getUint16(2 * i, true)));
}

function heat(value) {
  const place = Math.min(Math.max(value, 0), 1) * (HEAT.length - 1), low = Math.min(Math.floor(place), HEAT.length - 2);
  return HEAT[low].map((from, i) => from + (HEAT[low + 1][i] - from) * (place - low));
}

// A map over the picture, from its own least (or the common one) to its most, nearest cells.
function paint(canvas, picture, view, map, { scale, strength }) {
  const times = canvas.width / view.width, pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.filter = "grayscale(1)";
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  pen.filter = "none";
  const values = weightsOf(map), [low, high] = scale ?? [Math.min(...values), Math.max(...values)];
  const [wide, tall] = [canvas.width / map.columns, canvas.height / map.rows];
  values.forEach((value, i) => {
    const share = (value - low) / Math.max(high - low, 1e-12);
    pen.fillStyle = `rgb(${heat(share).join(" ")} / ${strength * Math.sqrt(Math.max(share, 0))})`;
    pen.fillRect((i % map.columns) * wide, Math.floor(i / map.columns) * tall, wide + 0.5, tall + 0.5);
  });
  if (map.box) {
    const [left, top, right, bottom] = map.box.map((edge) => edge * times);
    pen.strokeStyle = "#0ff";
    pen.lineWidth = 2;
    pen.strokeRect(left, top, right - left, bottom - top);
  }
}

// Draws `view`, an answer of /api/view, into `area`; `again` asks it once more with other options, such as {patch: 3}.
export function drawImage(area, view, again) {
  const picture = new Image();
  picture.alt = view.title;
  let chosen = 0, patch = null, common = false;
  const large = make("canvas", { tabIndex: 0 });
  const times = Math.max(1, Math.min(Math.floor(EDGE / Math.max(view.width, view.height)) || 1, 32));
  Object.assign(large, { width: view.width * times, height: view.height * times, className: "large-map" });
  const note = make("p", { className: "readout" }), thumbs = make("div", { className: "maps" });
  const facts = make("p", { className: "lead" });
  const options = () => {
    const all = common ? view.maps.flatMap((map) => [...weightsOf(map)]) : null;
    return { scale: all && [Math.min(...all), Math.max(...all)], strength: 0.75 };
  };

  function show() {
    const map = view.maps[chosen];
    facts.textContent = view.said.map(([name, chance]) => `${name} ${percent(chance)}`).join(", ");
    paint(large, picture, view, map, options());
    if (patch !== null) mark();
    note.textContent = `${map.group ? `${map.group}, ` : ""}${map.name}${patch === null ? "" : `, what patch ${patch} looked at`}`;
    for (const [i, node] of [...thumbs.querySelectorAll("button")].entries()) node.ariaPressed = String(i === chosen);
    large.setAttribute("aria-label", `${note.textContent} over ${view.title}`);
    large.setAttribute("role", "img");
  }

  function mark() {
    const map = view.maps[chosen], pen = large.getContext("2d");
    const [wide, tall] = [large.width / map.columns, large.height / map.rows];
    pen.strokeStyle = "#0ff";
    pen.lineWidth = 2;
    pen.strokeRect((patch % map.columns) * wide, Math.floor(patch / map.columns) * tall, wide, tall);
  }

  function list() {
    const groups = new Map();
    view.maps.forEach((map, i) => groups.set(map.group, [...(groups.get(map.group) ?? []), i]));
    thumbs.replaceChildren(...[...groups].map(([group, places]) => make("section", {},
      ...(group ? [make("h2", { textContent: group })] : []),
      make("div", { className: "thumbs" }, ...places.map((i) => {
        const canvas = make("canvas", { width: view.width, height: view.height });
        paint(canvas, picture, view, view.maps[i], options());
        const node = make("button", { type: "button", className: "thumb", title: view.maps[i].name }, canvas, make("span", { textContent: view.maps[i].name }));
        node.addEventListener("click", () => { chosen = i; show(); });
        return node;
      })))));
  }

  const choosePatch = latest(
    (signal, next) => {
      patch = next;
      return again(patch === null ? {} : { patch }, signal);
    },
    (found) => {
      view = found;
      list();
      show();
    },
  );

  if (view.patches) {
    large.addEventListener("click", (event) => {
      const { rows, columns } = view.maps[chosen], box = large.getBoundingClientRect();
      const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
      const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
      choosePatch(row * columns + column === patch ? null : row * columns + column);
    });
    large.addEventListener("keydown", (event) => {
      const { rows, columns } = view.maps[chosen];
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      if (event.key === "Escape") choosePatch(null);
      if (!step) return;
      event.preventDefault();
      choosePatch(Math.min(Math.max((patch ?? -step) + step, 0), rows * columns - 1));
    });
  }
  const scale = make("input", { type: "checkbox" });
  scale.addEventListener("change", () => { common = scale.checked; list(); show(); });
  const rows = () => [["map", "row", "column", "weight"], ...[view.maps[chosen]].flatMap((map) => [...weightsOf(map)].map((value, i) =>
    [`${map.group} ${map.name}`.trim(), String(Math.floor(i / map.columns)), String(i % map.columns), value.toFixed(5)]))];
  const hint = view.patches ? "Choose a patch (or use the arrow keys) to see what it looked at; Escape goes back." : "Each map goes from its own least to its most.";
  const saves = make("p", {}, "Save: ",
    button("PNG", () => large.toBlob((blob) => download("map.png", blob, "image/png"))),
    button("CSV", () => download("map.csv", csv(rows()), "text/csv")));
  area.replaceChildren(facts, make("div", { className: "beside" },
    make("div", {}, large, note, make("p", { className: "quiet", textContent: hint }), make("label", {}, scale, " One colour scale for all maps"), saves, twin("The chosen map", rows)),
    thumbs));
  picture.addEventListener("load", () => { list(); show(); byId("image").scrollIntoView({ block: "nearest" }); });
  picture.src = view.picture;
}
