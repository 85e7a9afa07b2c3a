// What models say of pictures: labels, boxes, masks, matches or completions, drawn over them.
import { Refusal, button, byId, chosenModel, csv, download, drawn, make, models, percent, remember, state, trouble, twin } from "./common.js";

const MOST = 8; // pictures at a time
const COLOURS = ["#4292c6", "#f0a061", "#59b36d", "#cf6fe0", "#e0526f", "#c9b23c", "#7f8fe8", "#49b8b3", "#b98a62", "#9aa4ad"];
const known = await models();
const select = chosenModel(() => { fields(); send(); });
let files = [], running = null;

const verbOf = () => Object.entries(known[select.value].verbs).find(([, { reads }]) => reads === "pictures")[0];
const lines = () => byId("texts").value.split("\n").map((line) => line.trim()).filter(Boolean);

// By verb: what is asked besides, and what is drawn of an answer.
const VERBS = {
  classify: { draw: (found) => ranked("label", found.labels.map(({ label, score }) => [label, score])) },
  detect: { options: () => ({ threshold: 0.05 }), controls: ["threshold"], draw: boxes },
  segment: { options: () => ({ mask: true }), controls: ["opacity"], draw: mask },
  match: { options: () => ({ texts: lines() }), controls: ["texts"], draw: (found) => ranked("text", found.texts.map(({ text, score }) => [text, score])) },
  paint: { options: () => ({ keep: Number(byId("keep").value), samples: 4 }), controls: ["keep"], draw: painted },
};

function fields() {
  const shown = VERBS[verbOf()].controls ?? [];
  for (const name of ["threshold", "opacity", "texts", "keep"]) byId(`field-${name}`).hidden = !shown.includes(name);
}

async function send() {
  if (!files.length) return;
  const verb = verbOf();
  if (verb === "match" && !lines().length) {
    trouble(new Error("Type the texts that the pictures may show, one a line."));
    return;
  }
  running?.abort();
  const own = (running = new AbortController());
  const form = new FormData();
  for (const file of files) form.append("file", file);
  form.append("json", JSON.stringify({ model: select.value, options: VERBS[verb].options?.() ?? {} }));
  try {
    const response = await fetch(`/api/${verb}`, { method: "POST", body: form, signal: own.signal });
    const found = await response.json();
    if (!response.ok) throw new Refusal(response.status, found.error);
    trouble(null);
    byId("found").replaceChildren(...found.answers.map((answer, i) => card(files[i], answer, VERBS[verb].draw)));
  } catch (error) {
    if (error.name !== "AbortError") trouble(error);
  }
}

// `draw` gets an answer and the picture's frame, and gives {nodes, rows}: what stands below, and the same as a table.
function card(file, answer, draw) {
  const picture = make("img", { src: URL.createObjectURL(file), alt: file.name });
  const frame = make("div", { className: "frame" }, picture);
  const node = make("article", { className: "card" }, make("h2", {}, make("bdi", { textContent: file.name })), frame);
  picture.addEventListener("load", () => {
    const { nodes, rows } = draw(answer, frame, picture);
    node.append(...nodes, ...(answer.warning ? [make("p", { className: "quiet", textContent: answer.warning })] : []),
      twin(`What was found in ${file.name}`, rows),
      make("p", {}, button("CSV", () => download("found.csv", csv(rows()), "text/csv")), " ", button("PNG", () => save(frame, picture))));
  }, { once: true });
  return node;
}

function ranked(title, pairs) {
  const [low, high] = [Math.min(0, ...pairs.map(([, share]) => share)), Math.max(1e-9, ...pairs.map(([, share]) => share))];
  const shares = pairs.every(([, share]) => share >= 0 && share <= 1);
  const table = make("table", { className: "bars" }, make("tbody", {}, ...pairs.slice(0, 8).map(([name, share]) => {
    const bar = make("i");
    bar.style.width = `${(100 * (share - low)) / (high - low)}%`;
    return make("tr", {}, make("td", {}, make("bdi", { textContent: name })), make("td", {}, bar), make("td", { textContent: shares ? percent(share) : share.toFixed(3) }));
  })));
  return { nodes: [table], rows: () => [[title, "score"], ...pairs.map(([name, share]) => [name, share.toFixed(4)])] };
}

function boxes(answer, frame, picture) {
  const svg = drawn("svg", { viewBox: `0 0 ${picture.naturalWidth} ${picture.naturalHeight}`, class: "over" });
  const labels = [...new Set(answer.boxes.map(({ label }) => label))], told = make("p");
  const size = picture.naturalWidth / 28;
  const show = () => {
    const least = Number(byId("threshold").value), sure = answer.boxes.filter(({ score }) => score >= least);
    svg.replaceChildren(...sure.flatMap(({ label, score, box: [left, top, right, bottom] }) => {
      const colour = COLOURS[labels.indexOf(label) % COLOURS.length];
      const frame = drawn("rect", { x: left, y: top, width: right - left, height: bottom - top, stroke: colour });
      const text = drawn("text", { x: left + size / 4, y: Math.max(top - size / 4, size), "font-size": size, fill: colour }, `${label} ${percent(score)}`);
      return [frame, text];
    }));
    told.textContent = sure.length ? sure.map(({ label, score }) => `${label} ${percent(score)}`).join(", ") : "Nothing so likely.";
  };
  frame.append(svg);
  frame.show = show;
  show();
  const rows = () => [["label", "probability", "left", "top", "right", "bottom"],
    ...answer.boxes.map(({ label, score, box }) => [label, score.toFixed(4), ...box.map((edge) => edge.toFixed(1))])];
  return { nodes: [told], rows };
}

function mask(answer, frame, picture) {
  const canvas = make("canvas", { className: "over", width: picture.naturalWidth, height: picture.naturalHeight });
  const places = new Map(answer.labels.map(({ value }, i) => [value, i]));
  const numbers = new Image();
  numbers.addEventListener("load", () => {
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.drawImage(numbers, 0, 0, canvas.width, canvas.height);
    const image = pen.getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < image.data.length; i += 4) {
      const colour = COLOURS[(places.get(image.data[i]) ?? 0) % COLOURS.length];
      for (let c = 0; c < 3; c++) image.data[i + c] = parseInt(colour.slice(1 + 2 * c, 3 + 2 * c), 16);
    }
    pen.putImageData(image, 0, 0);
  });
  numbers.src = answer.mask;
  frame.append(canvas);
  frame.show = () => { canvas.style.opacity = byId("opacity").value; };
  frame.show();
  const legend = make("p", { className: "legend" }, ...answer.labels.map(({ label, share }, i) => {
    const swatch = make("i", { className: "swatch" });
    swatch.style.background = COLOURS[i % COLOURS.length];
    return make("span", {}, swatch, make("bdi", { textContent: label }), ` ${percent(share)}`);
  }));
  return { nodes: [legend], rows: () => [["class", "value", "share"], ...answer.labels.map(({ label, value, share }) => [label, value, share.toFixed(4)])] };
}

function painted(answer) {
  const made = answer.pictures.map((source, i) => make("img", { src: source, alt: `made ${i + 1}`, className: "made" }));
  return { nodes: [make("div", { className: "row" }, ...made)], rows: () => [["picture", "of"], ...made.map((_, i) => [`made ${i + 1}`, answer.input])] };
}

// The picture with what is drawn over it, as one PNG.
async function save(frame, picture) {
  const canvas = make("canvas", { width: picture.naturalWidth, height: picture.naturalHeight }), pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0);
  for (const over of frame.querySelectorAll(".over")) {
    pen.globalAlpha = Number(over.style.opacity || 1);
    if (over.tagName === "CANVAS") {
      pen.drawImage(over, 0, 0);
      continue;
    }
    const copy = over.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    for (const each of copy.querySelectorAll("rect")) { each.setAttribute("fill", "none"); each.setAttribute("stroke-width", "2"); }
    const image = Object.assign(new Image(), { src: `data:image/svg+xml,${encodeURIComponent(copy.outerHTML)}` });
    await image.decode();
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  }
  canvas.toBlob((blob) => download("found.png", blob, "image/png"));
}

function take(list) {
  const pictures = [...list].filter(({ type }) => type.startsWith("image/"));
  if (!pictures.length) return;
  files = pictures.slice(0, MOST);
  if (pictures.length > MOST) trouble(new Error(`The first ${MOST} of ${pictures.length} pictures are shown.`));
  send();
}

const redraw = () => { for (const frame of document.querySelectorAll(".frame")) frame.show?.(); };
byId("files").addEventListener("change", (event) => take(event.target.files));
for (const event of ["dragover", "drop"]) {
  byId("drop").addEventListener(event, (dragged) => {
    dragged.preventDefault();
    if (event === "drop") take(dragged.dataTransfer.files);
  });
}
document.addEventListener("paste", (event) => take(event.clipboardData.files));
byId("threshold").addEventListener("input", () => {
  byId("threshold-said").textContent = Number(byId("threshold").value).toFixed(2);
  remember({ threshold: byId("threshold").value });
  redraw();
});
byId("opacity").addEventListener("input", redraw);
byId("keep").addEventListener("input", () => { byId("keep-said").textContent = percent(Number(byId("keep").value)); });
byId("keep").addEventListener("change", send);
byId("texts").addEventListener("change", () => { remember({ texts: byId("texts").value }); send(); });
byId("threshold").value = state().threshold ?? 0.5;
byId("threshold-said").textContent = Number(byId("threshold").value).toFixed(2);
byId("texts").value = state().texts ?? "";
fields();
