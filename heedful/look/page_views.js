// The three views: flow, heads, matrix. Each draws into `picture`, and sets `repaint`, which is called when the selection changes.

function flow(picture) {
  const map = mapOf(state.layer, state.head), { rows, columns } = texts(), S = columns.length;
  const visible = (words) => range(words.length).filter((i) => !options.hide || !special.has(words[i]));
  const queries = visible(rows), keys = visible(columns);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const height = ROW * Math.max(queries.length, keys.length, 1);
  svg.setAttribute("viewBox", `0 0 100 ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true"); // the tokens, the numbers and the table hold the same information
  svg.style.height = `${height}px`;

  const list = (side, words, places) => {
    const buttons = places.map((i) => {
      const token = make("button", { type: "button", textContent: words[i], title: `${words[i]} (${i})`, dir: "auto" });
      token.className = special.has(words[i]) ? "token special" : "token";
      token.addEventListener("mouseenter", () => preview({ q: null, k: null, [side]: i }));
      token.addEventListener("focus", () => preview({ q: null, k: null, [side]: i }));
      token.addEventListener("mouseleave", () => preview(null));
      token.addEventListener("blur", () => preview(null));
      token.addEventListener("click", () => toggle(side, i));
      return token;
    });
    const items = buttons.map((button) => make("li", {}, button));
    return [make("ol", { className: side === "k" ? "keys" : "queries" }, ...items), buttons];
  };
  const [keyList, keyTokens] = list("k", columns, keys);
  const [queryList, queryTokens] = list("q", rows, queries);
  const { kind, rows: asking, columns: asked } = layers()[0], alone = kind === "self" && asked === "target"; // not a translation
  picture.append(make("div", { className: "flow" },
    make("h2", { textContent: `${alone ? "Text" : TEXTS[asked]} (keys)` }),
    make("h2", { textContent: `${alone ? "Text" : TEXTS[asking]} (queries)` }),
    keyList, svg, queryList));
  roving(picture.firstChild, [...keyTokens, ...queryTokens]);

  const ranked = new Map(queries.map((q) =>
    [q, keys.filter((k) => allowed(q, k)).sort((a, b) => map[q * S + b] - map[q * S + a])]));
  repaint = () => {
    const { q: atQuery, k: atKey } = active(), any = atQuery !== null || atKey !== null;
    const lines = [];
    let possible = 0;
    queries.forEach((q, row) => ranked.get(q).forEach((k, rank) => {
      const weight = map[q * S + k], chosen = q === atQuery || k === atKey;
      possible++;
      if (weight >= options.threshold && weight > 0 && (chosen || rank < options.top)) {
        lines.push({ weight, chosen, row, column: keys.indexOf(k) });
      }
    }));
    // Weak lines first, so that strong ones are on top.
    lines.sort((a, b) => a.chosen - b.chosen || a.weight - b.weight);
    const drawn = lines.slice(-MOST_LINES);
    svg.replaceChildren(...drawn.map(({ weight, chosen, row, column }) => {
      const path = document.createElementNS(svg.namespaceURI, "path");
      const [from, to] = [(column + 0.5) * ROW, (row + 0.5) * ROW];
      path.setAttribute("d", `M0 ${from}C45 ${from} 55 ${to} 100 ${to}`);
      path.setAttribute("stroke-width", (0.75 + 5.25 * weight).toFixed(2));
      const strength = chosen ? 0.35 + 0.65 * weight : (0.12 + 0.88 * weight) * (any ? 0.15 : 1);
      path.setAttribute("stroke-opacity", strength.toFixed(3));
      return path;
    }));

    const dress = (tokens, places, side, share) => tokens.forEach((token, i) => {
      token.style.setProperty("--share", share(places[i]));
      token.ariaPressed = String(state[side] === places[i]);
    });
    dress(keyTokens, keys, "k", (k) => (atQuery === null ? 0 : map[atQuery * S + k]));
    dress(queryTokens, queries, "q", (q) => (atKey === null ? 0 : map[q * S + atKey]));

    const note = [`${drawn.length} of ${possible} lines drawn`];
    if (!lines.length && possible) note.push("all are weaker than the weight above: lower it to see them");
    if (lines.length > MOST_LINES) note.push(`the ${lines.length - MOST_LINES} weakest left out`);
    if (keys.length < S && queries.length) {
      const hidden = (q) => sum(range(S).filter((k) => special.has(columns[k])).map((k) => map[q * S + k]));
      const whose = atQuery === null ? queries : [atQuery];
      note.push(`mass hidden: ${decimal(sum(whose.map(hidden)) / whose.length)}`
        + (atQuery === null ? " (mean of the queries)" : " (this query)"));
    }
    byId("note").textContent = `${note.join("; ")}.`;
  };
}

function heads(picture) {
  const chosen = layers();
  const all = chosen.flatMap((layer, i) => range(layer.heads).map((head) => [i, head]));
  const thumbs = [];
  const thumb = ([layer, head], name, fact) => {
    const label = labelOf(layer, head);
    const button = make("button", {
      type: "button", className: "thumb", title: `${nameOf(layer, head)}: ${label}, entropy ${bits(entropy(layer, head))}`,
    }, thumbnail(mapOf(layer, head)), make("span", { textContent: name }), make("span", { textContent: fact ?? label }));
    button.ariaPressed = String(layer === state.layer && head === state.head);
    button.addEventListener("click", () => {
      Object.assign(state, { layer, head });
      for (const other of thumbs) other.ariaPressed = String(other === button);
      controls();
      remember();
      large();
      numbers();
      table();
    });
    thumbs.push(button);
    return button;
  };
  const groups = options.sort === "entropy"
    ? [make("div", { className: "thumbs" }, ...all.sort((a, b) => entropy(...a) - entropy(...b))
        .map((place) => thumb(place, `head ${place.join(".")}`, bits(entropy(...place)))))]
    : chosen.map((layer, i) => make("section", {}, make("h2", { textContent: `Layer ${i}` }),
        make("div", { className: "thumbs" }, ...range(layer.heads).map((head) => thumb([i, head], `head ${head}`)))));
  picture.append(make("div", { className: "layers" }, ...groups), legend());
  roving(picture, thumbs);
  large();
}

// The chosen head and the one that it is compared with, beside the thumbnails.
function large() {
  const area = byId("large"), pair = [{ layer: state.layer, head: state.head }];
  area.replaceChildren();
  if (compared && (compared.layer !== state.layer || compared.head !== state.head)) pair.push(compared);
  const space = area.clientWidth, width = pair.length > 1 && space >= 640 ? (space - 16) / 2 : space;
  const maps = pair.map((place, i) => {
    const { canvas, paint } = liveMap(place.layer, place.head, width);
    const label = place.head === MEAN ? "" : ` · ${labelOf(place.layer, place.head)}`;
    const button = make("button", { type: "button", className: "button", textContent: i ? "Let go" : "Keep to compare" });
    button.addEventListener("click", () => {
      compared = i ? null : place;
      large();
      byId("large").querySelector("button").focus();
    });
    area.append(make("figure", {}, make("figcaption", {}, `${nameOf(place.layer, place.head)}${label}`, button), canvas));
    return paint;
  });
  repaint = () => maps.forEach((paint) => paint());
  repaint();
}

function matrix(picture) {
  const { rows, columns } = texts(), map = mapOf(state.layer, state.head);
  const readout = make("p", { className: "readout" });
  const { canvas, paint } = liveMap(state.layer, state.head, picture.clientWidth);
  picture.append(readout, canvas, legend());
  repaint = () => {
    const { q, k } = active();
    paint();
    if (q === null || k === null) {
      readout.replaceChildren(make("span", { className: "quiet", textContent: "Queries down, keys across." }));
    } else {
      const value = allowed(q, k) ? decimal(map[q * columns.length + k]) : "not allowed";
      readout.replaceChildren(quoted(rows[q]), " looks at ", quoted(columns[k]), ": ", make("b", { textContent: value }));
    }
  };
}
