// Maps on a canvas: colours, thumbnails, and the large map, which handles the pointer and keys.

// ColorBrewer's Blues, as in matplotlib.
const BLUES = [
  [247, 251, 255], [222, 235, 247], [198, 219, 239], [158, 202, 225], [107, 174, 214],
  [66, 146, 198], [33, 113, 181], [8, 81, 156], [8, 48, 107],
];

function blue(value) {
  const place = Math.min(Math.max(value, 0), 1) * (BLUES.length - 1), low = Math.min(Math.floor(place), BLUES.length - 2);
  return BLUES[low].map((from, i) => Math.round(from + (BLUES[low + 1][i] - from) * (place - low)));
}

function textOn([r, g, b]) {
  const linear = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 ? "#000" : "#fff";
}

const scaleOf = (map) => (options.stretch ? Math.max(map.reduce((a, b) => Math.max(a, b)), 1e-9) : 1);

function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return pen;
}

// A colour of page.css, which differs in dark mode.
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

function hatch(pen, x, y, width, height) {
  pen.fillStyle = "#eeefef";
  pen.fillRect(x, y, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = "#a3aab2";
  pen.lineWidth = 0.75;
  pen.beginPath();
  // Lines at multiples of 6 of x + y, so that they meet across neighbouring cells.
  for (let c = Math.ceil((x + y) / 6) * 6; c < x + y + width + height; c += 6) {
    pen.moveTo(c - y, y);
    pen.lineTo(c - y - height, y + height);
  }
  pen.stroke();
  pen.restore();
}

// Draws a map with its tokens (if cells are tiny, by enlarging its thumbnail `small`), and returns a function from a point to its cell.
function drawMap(canvas, map, small, width, mark) {
  const { rows, columns } = texts(), T = rows.length, S = columns.length, TILT = Math.PI / 3;
  const font = (bold) => `${bold ? "600 " : ""}12px ${getComputedStyle(document.body).fontFamily}`;
  let pen = canvas.getContext("2d");
  pen.font = font(true);
  const longest = Math.min(110, width * 0.28);
  const fit = (text) => {
    if (pen.measureText(text).width <= longest) return text;
    let end = text.length;
    while (end && pen.measureText(`${text.slice(0, end)}…`).width > longest) end--;
    return `${text.slice(0, end)}…`;
  };
  const down = rows.map(fit), across = columns.map(fit);
  const widest = (words) => Math.max(...words.map((word) => pen.measureText(word).width));
  const left = Math.ceil(widest(down)) + 8, top = Math.ceil(widest(across) * Math.sin(TILT)) + 14;
  const right = Math.ceil(widest(across) * Math.cos(TILT)) + 2;
  const cell = Math.min(56, (width - left - right) / S, Math.max(3, 760 / T));
  const every = Math.ceil(12 / cell), scale = scaleOf(map);
  pen = sharp(canvas, left + cell * S + right, top + cell * T + 2);
  pen.textBaseline = "middle";

  if (cell < 9) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, left, top, cell * S, cell * T);
  }
  pen.fillStyle = "#eef2f6"; // between the cells, also in dark mode
  if (cell >= 9) pen.fillRect(left, top, cell * S - 1, cell * T - 1);
  for (const q of range(cell < 9 ? 0 : T)) {
    for (const k of range(S)) {
      const x = left + k * cell, y = top + q * cell, weight = map[q * S + k];
      if (!allowed(q, k)) {
        hatch(pen, x, y, cell, cell);
        continue;
      }
      const colour = blue(weight / scale);
      pen.fillStyle = `rgb(${colour})`;
      pen.fillRect(x, y, cell - 1, cell - 1);
      if (cell >= 32 && weight >= 0.005) {
        pen.fillStyle = textOn(colour);
        pen.font = font(false).replace("12px", "11px");
        pen.textAlign = "center";
        pen.fillText(decimal(weight), x + cell / 2, y + cell / 2);
      }
    }
  }
  const word = (text, bold) => {
    pen.font = font(bold);
    pen.fillStyle = ink("--ink");
    pen.fillText(text, 0, 0);
  };
  const place = (x, y, angle, align, draw) => {
    pen.save();
    pen.translate(x, y);
    pen.rotate(angle);
    pen.textAlign = align;
    draw();
    pen.restore();
  };
  // If not all labels fit, the marked one is shown, and its neighbours make room.
  const shows = (i, at) => i === at || (i % every === 0 && (at === null || Math.abs(i - at) >= every));
  down.forEach((text, q) => {
    if (shows(q, mark.q)) {
      place(left - 6, top + (q + 0.5) * cell, 0, "right", () => word(text, q === mark.q));
    }
  });
  across.forEach((text, k) => {
    if (shows(k, mark.k)) {
      place(left + (k + 0.5) * cell, top - 6, -TILT, "left", () => word(text, k === mark.k));
    }
  });
  const frame = (x, y, w, h) => {
    for (const [colour, wide] of [["#fff", 4], ["#18212d", 2]]) { // to be seen on light cells and on dark ones
      Object.assign(pen, { strokeStyle: colour, lineWidth: wide });
      pen.strokeRect(left + x * cell - 0.5, top + y * cell - 0.5, w * cell, h * cell);
    }
  };
  if (mark.q !== null) frame(0, mark.q, S, 1);
  if (mark.k !== null) frame(mark.k, 0, 1, T);
  return (x, y) => {
    const [q, k] = [Math.floor((y - top) / cell), Math.floor((x - left) / cell)];
    return q >= 0 && q < T && k >= 0 && k < S ? { q, k } : null;
  };
}

function thumbnail(map) {
  const { T, S } = layers()[0], scale = scaleOf(map);
  const canvas = make("canvas", { width: S, height: T });
  const pen = canvas.getContext("2d"), image = pen.createImageData(S, T);
  for (const q of range(T)) {
    for (const k of range(S)) {
      const grey = (q + k) % 2 ? 205 : 238;
      const [r, g, b] = allowed(q, k) ? blue(map[q * S + k] / scale) : [grey, grey, grey];
      image.data.set([r, g, b, 255], 4 * (q * S + k));
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

function legend() {
  const bar = make("canvas"), pen = sharp(bar, 120, 10);
  for (const x of range(120)) {
    pen.fillStyle = `rgb(${blue(x / 119)})`;
    pen.fillRect(x, 0, 1, 10);
  }
  const items = [make("span", {}, "0", bar, options.stretch ? "the largest weight of each map" : "1")];
  if (layers()[0].causal) {
    const swatch = make("canvas");
    hatch(sharp(swatch, 22, 12), 0, 0, 22, 12);
    items.push(make("span", {}, swatch, "not allowed: a token that comes later"));
  }
  return make("div", { className: "legend" }, ...items);
}

// A map that handles the pointer and the arrow keys.
function liveMap(layer, head, width) {
  const map = mapOf(layer, head), small = thumbnail(map), { rows, columns } = texts();
  const canvas = make("canvas", { tabIndex: 0 });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `${nameOf(layer, head)}: ${rows.length} queries by ${columns.length} keys. `
    + "Arrow keys move between cells, Enter pins.");
  let cellAt = () => null;
  const paint = () => { cellAt = drawMap(canvas, map, small, width, active()); };
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(event.offsetX, event.offsetY);
    if (cell?.q !== hover?.q || cell?.k !== hover?.k) preview(cell);
  });
  canvas.addEventListener("pointerleave", () => preview(null));
  canvas.addEventListener("blur", () => preview(null));
  canvas.addEventListener("click", (event) => {
    const cell = cellAt(event.offsetX, event.offsetY);
    if (cell) pin(cell.q === state.q && cell.k === state.k ? { q: null, k: null } : cell);
  });
  canvas.addEventListener("keydown", (event) => {
    const { q, k } = active(), [T, S] = [rows.length, columns.length];
    const step = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -S], End: [0, S],
    }[event.key];
    if (event.key === "Enter" && hover) pin(hover);
    if (!step) return;
    event.preventDefault();
    const move = (from, by, size) => (from === null ? 0 : Math.min(Math.max(from + by, 0), size - 1));
    preview({ q: move(q, step[0], T), k: move(k, step[1], S) });
  });
  return { canvas, paint };
}
