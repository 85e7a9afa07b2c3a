// What models say of pictures: labels, boxes, masks, matches, texts or completions, drawn over them.
import { ask, askOf, button, byId, chosenModel, csv, download, drawn, make, models, number, percent, remember, state, takeFiles, trouble, twin } from "./common.js";

const MOST = 8; // pictures at a time
const SAMPLES = 4; // of each that is painted
const EDGE = 480; // pixels that the shorter edge of a saved picture has at least
const COLOURS = ["#4292c6", "#f0a061", "#59b36d", "#cf6fe0", "#e0526f", "#c9b23c", "#7f8fe8", "#49b8b3", "#b98a62", "#9aa4ad"];
const CONTROLS = ["threshold", "opacity", "keep"]; // whose values stand in the address
const START = { threshold: 0.5, opacity: 0.55, keep: 0.5 };
const known = await models();
let files = [], notice = null, running = null, seed = 0, colours = new Map();

const verbOf = () => Object.entries(known[byId("model").value].verbs).find(([, { reads }]) => reads === "pictures")[0];
const lines = () => byId("texts").value.split("\n").map((line) => line.trim()).filter(Boolean);
const asked = () => byId("question").value.trim();
const valueOf = (id) => Number(byId(id).value);
const stem = (name) => name.replace(/\.[^.]*$/, "") || "picture";

// The same colour for the same class in all pictures.
function colourOf(label) {
  if (!colours.has(label)) colours.set(label, COLOURS[colours.size % COLOURS.length]);
  return colours.get(label);
}

// By verb: what is asked besides, what can be set, and what is drawn of an answer.
const VERBS = {
  classify: { draw: ({ labels }) => ranked("label", labels.map(({ label, score }) => [label, score])) },
  detect: { options: () => ({ threshold: Number(byId("threshold").min) }), fields: ["threshold"], draw: boxes },
  segment: { options: () => ({ mask: true }), fields: ["opacity"], draw: mask },
  match: { options: () => ({ texts: lines() }), fields: ["texts"], draw: ({ texts }) => ranked("text", texts.map(({ text, score }) => [text, score])) },
  describe: { options: () => (asked() ? { question: asked() } : {}), fields: ["question"], draw: text },
  paint: { options: () => ({ keep: valueOf("keep"), samples: SAMPLES, sampling: { seed } }), fields: ["keep", "new", "again"], draw: painted },
};

function fields() {
  const shown = VERBS[verbOf()]?.fields ?? [];
  for (const name of ["threshold", "opacity", "texts", "question", "keep", "new", "again"]) byId(`field-${name}`).hidden = !shown.includes(name);
}

// ---------------------------------------------------------------------------------------------- questions

// Shows what `question` gives, cards, unless it was given up for a newer one.
async function show(question, count) {
  running?.abort();
  const own = (running = new AbortController());
  byId("busy").textContent = count ? `Looking at ${count === 1 ? "the picture" : `${count} pictures`} …` : "Painting …";
  byId("found").ariaBusy = "true";
  try {
    const made = await question(own.signal);
    if (own !== running) return;
    colours = new Map();
    byId("found").replaceChildren(...made());
    trouble(notice);
  } catch (error) {
    if (error.name === "AbortError" || own !== running) return;
    byId("found").replaceChildren(); // what is there would be of other pictures, or another model
    trouble(error);
  }
  byId("busy").textContent = "";
  byId("found").ariaBusy = "false";
}

function send() {
  byId("field-again").disabled = !files.length;
  if (!files.length) return byId("found").replaceChildren();
  const verb = verbOf(), sent = files, { options, draw } = VERBS[verb];
  if (verb === "match" && !lines().length) {
    running?.abort();
    byId("found").replaceChildren();
    byId("busy").textContent = "Type the texts that the pictures may show, one a line.";
    byId("texts").focus();
    return;
  }
  show(async (signal) => {
    const answers = await askOf(sent, verb, { model: byId("model").value, options: options?.() ?? {} }, signal);
    return () => answers.map((answer, i) => card(sent[i], answer, draw));
  }, sent.length);
}

function paintNew() {
  files = [];
  notice = null;
  byId("files").value = "";
  byId("field-again").disabled = true;
  seed++;
  show(async (signal) => {
    const options = { samples: 2 * SAMPLES, sampling: { seed } };
    const { answers } = await ask("paint", { model: byId("model").value, inputs: [""], options }, signal);
    return () => answers.map((answer) => finished(make("article", { className: "card wide" }, make("h2", { textContent: "New pictures" })), "new", answer, painted(answer)));
  }, 0);
}

// ------------------------------------------------------------------------------------------------- cards

// `draw` gets an answer, the picture's frame and the picture, and gives {nodes, rows, over, said}: what stands below; the
// same as a table; what a saved picture has over it, by (pen, times); and below it, a list of [name, share, colour].
function card(file, answer, draw) {
  const picture = make("img", { alt: file.name }), source = URL.createObjectURL(file);
  const frame = make("div", { className: "frame" }, picture);
  const node = make("article", { className: "card" }, make("h2", {}, make("bdi", { textContent: file.name })), frame);
  const told = (shown) => {
    URL.revokeObjectURL(source);
    finished(node, file.name, answer, draw(answer, frame, picture), shown ? picture : null);
  };
  picture.addEventListener("load", () => told(true), { once: true });
  picture.addEventListener("error", () => {
    picture.remove();
    frame.append(make("p", { className: "quiet", textContent: "The browser cannot show this kind of file; the model has read it." }));
    told(false);
  }, { once: true });
  picture.src = source;
  return node;
}

function finished(node, name, answer, { nodes, rows, over = () => {}, said = () => [], pictures = [] }, picture = null) {
  const saves = [button("CSV", () => download(`${stem(name)}.csv`, csv(rows()), "text/csv"))];
  if (pictures.length) saves.push(button("PNG", () => saveRow(pictures, stem(name))));
  else if (picture) saves.push(button("PNG", () => save(picture, over, said(), stem(name))));
  node.append(...nodes, ...(answer.warning ? [make("p", { className: "quiet", textContent: answer.warning })] : []),
    twin(`What was found in ${name}`, rows), make("p", {}, ...saves));
  return node;
}

function ranked(title, pairs) {
  const [low, high] = [Math.min(0, ...pairs.map(([, share]) => share)), Math.max(1e-9, ...pairs.map(([, share]) => share))];
  const shares = pairs.every(([, share]) => share >= 0 && share <= 1), told = (share) => (shares ? percent(share) : number(share));
  const length = (share) => (share - low) / (high - low);
  const table = make("table", { className: "bars" }, make("tbody", {}, ...pairs.slice(0, 8).map(([name, share]) => {
    const bar = make("i");
    bar.style.width = `${100 * length(share)}%`;
    return make("tr", {}, make("td", { title: name }, make("bdi", { textContent: name })), make("td", {}, bar), make("td", { textContent: told(share) }));
  })));
  return {
    nodes: [table],
    rows: () => [[title, "score"], ...pairs.map(([name, share]) => [name, share.toFixed(4)])],
    said: () => pairs.slice(0, 8).map(([name, share]) => [`${name} ${told(share)}`, length(share), "#0e7a6c"]),
  };
}

function legend(pairs) {
  return make("p", { className: "legend" }, ...pairs.map(([label, share]) => {
    const swatch = make("i", { className: "swatch" });
    swatch.style.background = colourOf(label);
    return make("span", {}, swatch, make("bdi", { textContent: label }), percent(share));
  }));
}

function boxes(answer, frame, picture) {
  const [width, height] = [picture.naturalWidth, picture.naturalHeight];
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "over", "aria-hidden": "true" });
  const told = make("div"), size = Math.max(width, height) / 26;
  for (const { label } of answer.boxes) colourOf(label);
  const sure = () => answer.boxes.filter(({ score }) => score >= valueOf("threshold"));
  // Each with its words and where they stand: above its box, inside of one that begins at the top, never outside of the
  // picture, and below words that stand there already.
  const placed = () => {
    const taken = [];
    return sure().map(({ label, score, box }) => {
      const [left, top, right] = box, far = left > 0.6 * width, words = `${label} ${percent(score)}`, long = 0.62 * size * words.length;
      const x = far ? Math.min(right, width - size / 4) : left + size / 4, begin = far ? x - long : x;
      let y = top > 1.3 * size ? top - size / 3 : top + size;
      while (y < height - 0.6 * size && taken.some((other) => Math.abs(other.y - y) < size && begin < other.begin + other.long && other.begin < begin + long)) y += 0.3 * size;
      taken.push({ begin, long, y });
      return { label, box, words, x, y, far };
    }).reverse();
  };
  const show = () => {
    svg.replaceChildren(...placed().flatMap(({ label, box: [left, top, right, bottom], words, x, y, far }) => [
      drawn("rect", { x: left, y: top, width: right - left, height: bottom - top, stroke: colourOf(label) }),
      drawn("text", { x, y, "text-anchor": far ? "end" : "start", "font-size": size }, words),
    ]));
    told.replaceChildren(sure().length ? legend(sure().map(({ label, score }) => [label, score])) : make("p", { textContent: "Nothing so likely." }));
  };
  if (width) frame.append(svg);
  frame.show = show;
  show();
  return {
    nodes: [told],
    rows: () => [["label", "probability", "left", "top", "right", "bottom"],
      ...sure().map(({ label, score, box }) => [label, score.toFixed(4), ...box.map((edge) => edge.toFixed(1))])],
    over: (pen, times) => {
      Object.assign(pen, { lineWidth: 3, font: `600 ${size * times}px sans-serif`, lineJoin: "round" });
      for (const { label, box, words, x, y, far } of placed()) {
        const [left, top, right, bottom] = box.map((edge) => edge * times);
        Object.assign(pen, { strokeStyle: colourOf(label), fillStyle: "#fff", textAlign: far ? "end" : "start" });
        pen.strokeRect(left, top, right - left, bottom - top);
        pen.strokeStyle = "#000c";
        for (const put of ["strokeText", "fillText"]) pen[put](words, x * times, y * times);
      }
    },
  };
}

function mask(answer, frame, picture) {
  const canvas = make("canvas", { className: "over" }), numbers = new Image();
  const pairs = answer.labels.map(({ label, share }) => [label, share]);
  const rgb = new Map(answer.labels.map(({ label, value }) => [value, [1, 3, 5].map((i) => parseInt(colourOf(label).slice(i, i + 2), 16))]));
  numbers.addEventListener("load", () => {
    Object.assign(canvas, { width: numbers.naturalWidth, height: numbers.naturalHeight });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.drawImage(numbers, 0, 0);
    const image = pen.getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < image.data.length; i += 4) image.data.set(rgb.get(image.data[i]) ?? [0, 0, 0], i);
    pen.putImageData(image, 0, 0);
  });
  numbers.src = answer.mask;
  if (picture.naturalWidth) frame.append(canvas);
  frame.show = () => { canvas.style.opacity = byId("opacity").value; };
  frame.show();
  return {
    nodes: [legend(pairs)],
    rows: () => [["class", "value", "share"], ...answer.labels.map(({ label, value, share }) => [label, value, share.toFixed(4)])],
    over: (pen, times) => {
      pen.globalAlpha = valueOf("opacity");
      pen.drawImage(canvas, 0, 0, picture.naturalWidth * times, picture.naturalHeight * times);
      pen.globalAlpha = 1;
    },
    said: () => pairs.map(([label, share]) => [`${label} ${percent(share)}`, share, colourOf(label)]),
  };
}

function text({ text }) {
  return {
    nodes: [make("p", {}, make("bdi", { textContent: text || "(nothing)" }))],
    rows: () => [["text"], [text]],
    said: () => [[text, 0, "#0e7a6c"]],
  };
}

function painted(answer) {
  const pictures = answer.pictures.map((source, i) => make("img", { src: source, alt: `made ${i + 1}`, className: "made" }));
  return { nodes: [make("div", { className: "row" }, ...pictures)], rows: () => [["picture", "PNG"], ...answer.pictures.map((source, i) => [`made ${i + 1}`, source])], pictures };
}

// ------------------------------------------------------------------------------------------------- files

const saved = (canvas, name) => canvas.toBlob((blob) => download(`${name}.png`, blob, "image/png"));

// The picture with what is drawn over it, small ones enlarged so that it can be read, and below it what was said of it.
function save(picture, over, said, name) {
  const [width, height] = [picture.naturalWidth, picture.naturalHeight];
  const times = Math.max(1, Math.ceil(EDGE / Math.min(width, height))), line = Math.ceil((width * times) / 20);
  const canvas = make("canvas", { width: width * times, height: height * times + said.length * line }), pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, 0, 0, width * times, height * times);
  over(pen, times);
  Object.assign(pen, { font: `${line * 0.55}px sans-serif`, textAlign: "start", textBaseline: "middle" });
  said.forEach(([text, share, colour], i) => {
    const top = height * times + i * line;
    pen.fillStyle = colour;
    pen.fillRect(line * 0.2, top + line * 0.2, Math.max(1, (canvas.width * 0.3 - line * 0.4) * share), line * 0.6);
    pen.fillStyle = "#171d2b";
    pen.fillText(text, canvas.width * 0.3, top + line / 2, canvas.width * 0.69);
  });
  saved(canvas, name);
}

function saveRow(pictures, name) {
  const [{ naturalWidth: width, naturalHeight: height }] = pictures;
  const canvas = make("canvas", { width: width * pictures.length, height }), pen = canvas.getContext("2d");
  pictures.forEach((picture, i) => pen.drawImage(picture, i * width, 0));
  saved(canvas, name);
}

function take(list) {
  const all = [...list], pictures = all.filter(({ type }) => type.startsWith("image/"));
  if (!all.length) return;
  files = pictures.slice(0, MOST);
  notice = pictures.length > MOST ? new Error(`The first ${MOST} of ${pictures.length} pictures are shown.`)
    : pictures.length < all.length ? new Error(`${all.length - pictures.length} of ${all.length} files are no pictures.`) : null;
  trouble(notice);
  send();
}

// ---------------------------------------------------------------------------------------------- controls

function say() {
  byId("threshold-said").textContent = percent(valueOf("threshold"));
  byId("opacity-said").textContent = percent(valueOf("opacity"));
  byId("keep-said").textContent = percent(valueOf("keep"));
}

for (const id of CONTROLS) {
  byId(id).value = state()[id] ?? START[id];
  byId(id).addEventListener("input", () => {
    remember({ [id]: byId(id).value });
    say();
    for (const frame of document.querySelectorAll(".frame")) frame.show?.();
  });
}
byId("keep").addEventListener("change", send);
for (const id of ["texts", "question"]) {
  byId(id).value = state()[id] ?? "";
  byId(id).addEventListener("change", () => { remember({ [id]: byId(id).value }); send(); });
}
byId("field-new").addEventListener("click", paintNew);
byId("field-again").addEventListener("click", () => { seed++; send(); });
takeFiles(take);
document.addEventListener("paste", (event) => take(event.clipboardData.files));
chosenModel(() => { fields(); send(); });
say();
fields();
take(byId("files").files); // chosen before this script was there
