// One attention with its numbers, card by card: from a query of one head to what it adds. Needs a server.

const walked = { key: "", found: null, trouble: "" };
const FIRST = 4; // numbers of a vector that are shown as text

function walk(picture) {
  if (state.layer === MEAN) state.layer = layers().length - 1;
  if (state.head === MEAN) state.head = 0;
  state.q = state.q ?? texts().rows.length - 1;
  remember();
  controls();
  const { model, text, target, pair, languages } = view.live;
  const asked = { model, text, ...languages, ...(target ? { target } : {}), ...(pair ? { pair } : {}) };
  const body = { ...asked, layer: layers()[state.layer].name, head: state.head, query: state.q };
  const key = JSON.stringify(body);
  if (walked.key !== key) {
    walked.key = key;
    fetch("api/walk", { method: "POST", headers: { "Content-Type": "application/json" }, body: key })
      .then(async (response) => [response.ok, await response.json()])
      .then(([ok, found]) => {
        if (walked.key !== key) return;
        [walked.found, walked.trouble] = ok ? [found, ""] : [null, found.error.message];
        if (state.view === "walk") build();
      });
    return;
  }
  repaint = () => {};
  if (!walked.found) {
    picture.append(make("p", { textContent: walked.trouble || "…" }));
    return;
  }
  picture.append(chosenQuery(), ...cards(walked.found));
}

function chosenQuery() {
  const { rows } = texts();
  const buttons = rows.map((token, i) => {
    const button = make("button", { type: "button", className: "token", textContent: token, dir: "auto", ariaPressed: String(i === state.q) });
    button.addEventListener("click", () => { state.q = i; build(); });
    return button;
  });
  const list = make("p", { className: "queries-of-walk" }, "Query: ", ...buttons);
  roving(list, buttons);
  return list;
}

// A vector as a strip of colours: grey above zero, orange below; hovering shows a number. `share`: of a card's width.
function strip(values, most, share = 1) {
  const room = Math.min(560, byId("picture").clientWidth - 40) * share;
  const wide = Math.max(1, Math.min(9, Math.floor(room / values.length))), canvas = make("canvas", { className: "strip" });
  const pen = sharp(canvas, wide * values.length, 16);
  values.forEach((value, i) => {
    const share = Math.min(1, Math.abs(value) / most);
    pen.globalAlpha = share;
    pen.fillStyle = ink(value < 0 ? "--negative" : "--soft");
    pen.fillRect(i * wide, 0, wide - (wide > 3 ? 1 : 0), 16);
  });
  canvas.addEventListener("pointermove", (event) => {
    const i = Math.floor((event.offsetX / canvas.clientWidth) * values.length);
    canvas.title = `${i}: ${signed(values[Math.min(i, values.length - 1)])}`;
  });
  const few = values.slice(0, share < 0.5 ? FIRST - 1 : FIRST).map(signed).join(", ");
  return make("span", { className: "vector" }, canvas, make("span", { className: "quiet", textContent: `${few}${values.length > FIRST ? `, … (${values.length})` : ""}` }));
}

const mostOf = (...vectors) => Math.max(1e-9, ...vectors.flat(Infinity).map(Math.abs));

// The softmax over the allowed keys in float64, which the model's should equal.
function softmaxAgain({ products, scale, bias, allowed }) {
  const scores = products.map((product, i) => (allowed[i] ? product * scale + (bias ? bias[i] : 0) : -Infinity));
  const top = Math.max(...scores), parts = scores.map((score) => (top === -Infinity ? 0 : Math.exp(score - top)));
  const total = parts.reduce((a, b) => a + b, 0);
  return parts.map((part) => (total ? part / total : 0));
}

function scaledProduct(found, i) {
  const product = found.products[i] * found.scale, cap = found.softcap;
  return cap ? cap * Math.tanh(product / cap) : product;
}

function cards(found) {
  const { columns } = texts(), keys = found.keys.length ? found.keys : columns, d = found.q.length;
  const query = quoted(found.queries[found.query] ?? texts().rows[state.q]);
  const row = (i, ...cells) => make("tr", {}, make("th", { scope: "row" }, make("bdi", { textContent: keys[i] })), ...cells.map((cell) => make("td", {}, cell)));
  const each = (draw, ...heading) => make("table", { className: "walk-table" },
    ...(heading.length ? [make("thead", {}, make("tr", {}, make("td"), ...heading.map((textContent) => make("th", { scope: "col", textContent }))))] : []),
    make("tbody", {}, ...keys.map((_, i) => row(i, ...draw(i)))));
  const parts = found.k.map((key) => key.map((value, j) => value * found.q[j])), mostPart = mostOf(parts);
  const again = softmaxAgain(found), off = Math.max(...again.map((weight, i) => Math.abs(weight - found.weights[i])));
  const card = (title, text, ...parts) => make("li", { className: "walk-card" }, make("h3", { textContent: title }), make("p", { className: "quiet" }, ...text), ...parts);
  const scaled = (i) => scaledProduct(found, i);
  const root = Math.abs(found.scale * Math.sqrt(d) - 1) < 1e-6 ? `the square root of ${d}` : `1 / ${found.scale.toPrecision(4)}`;
  const bar = (share) => { const node = make("i"); node.style.width = `${100 * share}%`; return make("span", { className: "walk-bar" }, node); };
  return [make("ol", { className: "walk" },
    card("x", ["What stands at ", query, ` before this layer: ${found.x.length} numbers.`], strip(found.x, mostOf(found.x))),
    card("q, k, v", [`Head ${found.head} of ${found.heads} makes a query of it, and of each key's input a key and a value, with its own matrices. Positions, where the model turns q and k by them, are in these.`],
      make("p", {}, "q ", strip(found.q, mostOf(found.q))),
      each((i) => [strip(found.k[i], mostOf(found.k), 0.4), strip(found.v[i], mostOf(found.v), 0.4)], "k", "v")),
    card("q · k", ["How well the query fits each key: the products of their numbers, one by one, and their sum."],
      each((i) => [strip(parts[i], mostPart, 0.6), signed(found.products[i])], "q times k", "sum")),
    card("÷ √d", [`Divided by ${root}, so that wide heads are no surer than narrow ones.`, found.softcap ? ` No more than ${found.softcap} on either side.` : "", found.bias ? " Then what positions add." : ""],
      each((i) => [signed(scaled(i)), ...(found.bias ? [`+ ${signed(found.bias[i])}`] : [])])),
    card("mask", [found.allowed.every(Boolean) ? "Every key may be seen." : "What may not be seen is minus infinity."],
      each((i) => [found.allowed[i] ? signed(found.scores[i]) : "not allowed"])),
    card("softmax", [`Shares that sum up to 1. Computed again here from the numbers above: they differ by at most ${off.toExponential(1)} from the model's.`],
      each((i) => [bar(found.weights[i]), decimal(found.weights[i])])),
    card("Σ, W_O", ["The values, weighted and summed; then the output matrix, which mixes the heads."],
      make("p", {}, "sum ", strip(found.found, mostOf(found.found))),
      ...(found.gate ? [make("p", {}, "times its gate ", strip(found.gate, 1))] : []),
      make("p", {}, "this head's part ", strip(found.share, mostOf(found.share, found.out))),
      make("p", {}, "all heads ", strip(found.out, mostOf(found.share, found.out)))))];
}

function walkNumbers() {
  const found = walked.found;
  if (!found) return byId("numbers").replaceChildren();
  const best = found.weights.map((weight, i) => ({ name: (found.keys.length ? found.keys : texts().columns)[i], weight, index: i }));
  return byId("numbers").replaceChildren(
    make("h2", { textContent: nameOf(state.layer, state.head) }), make("code", { textContent: found.layer }),
    make("h3", {}, quoted(found.queries[found.query] ?? ""), " looks at"), bars(best, null),
    make("p", { className: "quiet" }, "In float64 on the server: a difference of ", make("span", { className: "number", textContent: `${found.difference.toExponential(1)}.` })));
}

function walkTable(digits) {
  const found = walked.found;
  if (!found) return [["key"]];
  const keys = found.keys.length ? found.keys : texts().columns;
  return [["key", "q · k", "scaled", "bias", "allowed", "weight"], ...keys.map((key, i) => [
    key, found.products[i].toFixed(digits), scaledProduct(found, i).toFixed(digits),
    found.bias ? found.bias[i].toFixed(digits) : "", found.allowed[i] ? "yes" : "no", found.weights[i].toFixed(digits),
  ])];
}
