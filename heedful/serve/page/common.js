// What all views use: parts of a document, formats, questions to the server, and the state in the address.
export * from "./formats.js";

export const byId = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A language that a run names by a code, and that code; any other name as it is, without one.
export function language(name) {
  const code = /^[a-z]{2,3}([-_]\w+)*$/i.test(name) ? name.replaceAll("_", "-") : "";
  return { code, title: code ? new Intl.DisplayNames(["en"], { type: "language" }).of(code) : name };
}

// --------------------------------------------------------------------------------------------- questions

export class Refusal extends Error {
  constructor(status, { message = "no answer", fix = null } = {}) {
    super(fix ? `${message}: ${fix}` : message);
    this.status = status;
  }
}

const SILENT = { message: "The server does not answer", fix: "is it still running?" };

// What is asked of a server that may be gone; of that each browser has words of its own.
const answered = (work) => work.catch((error) => { throw error.name === "AbortError" ? error : new Refusal(0, SILENT); });

export const reached = (path, how) => answered(fetch(path, how));

async function checked(response) {
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refusal(response.status, said.error);
}

export async function get(path, signal) {
  return (await checked(await reached(path, { signal }))).json();
}

export async function ask(verb, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await reached(`api/${verb}`, { method: "POST", headers, body: JSON.stringify(body), signal });
  return (await checked(response)).json();
}

// The answers to files, in their order.
export async function askOf(files, verb, body, signal) {
  const form = new FormData();
  for (const file of files) form.append("file", file);
  form.append("json", JSON.stringify(body));
  const response = await reached(`api/${verb}`, { method: "POST", body: form, signal });
  return (await (await checked(response)).json()).answers;
}

// Hands over the files that are chosen, or dropped anywhere: a browser would leave the page for a file.
export function takeFiles(take) {
  byId("files").addEventListener("change", (event) => take(event.target.files));
  for (const event of ["dragover", "drop"]) {
    document.addEventListener(event, (dragged) => {
      dragged.preventDefault();
      byId("drop").classList.toggle("ready", event === "dragover");
      if (event === "drop") take(dragged.dataTransfer.files);
    });
  }
  document.addEventListener("dragleave", (dragged) => dragged.relatedTarget === null && byId("drop").classList.remove("ready"));
}

// The pieces of an answer as they come.
export async function* stream(verb, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const sent = { ...body, stream: true };
  const response = await checked(await reached(`api/${verb}`, { method: "POST", headers, body: JSON.stringify(sent), signal }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await answered(reader.read());
      if (done) throw new Refusal(0, SILENT); // before it said that this was all
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.replace(/^data: /, "");
        if (data === "[DONE]") return;
        const piece = JSON.parse(data);
        if (piece.error) throw new Refusal(500, piece.error);
        yield piece;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// One question at a time: a newer one gives up the older. `answer` is called unless it was given up, or `failed`.
export function latest(question, answer, failed = () => {}) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const own = (running = new AbortController());
    try {
      const found = await question(own.signal, ...given);
      if (own === running) {
        trouble(null);
        answer(found, ...given);
      }
    } catch (error) {
      if (error.name === "AbortError" || own !== running) return;
      trouble(error);
      failed(...given);
    }
  };
}

export function trouble(error) {
  const line = byId("trouble");
  line.hidden = error === null;
  line.textContent = error === null ? "" : error.message;
}

export function later(milliseconds, work) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}

let known = null;
export async function models() {
  known ??= get("api/models").then((found) => Object.fromEntries(found.models.map((model) => [model.name, model])));
  return known;
}

// ---------------------------------------------------------------------------------------------- address

// The state of a view, which a link to it brings back.
export function state() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export function remember(changes) {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") words.delete(key);
    else words.set(key, value);
  }
  history.replaceState(null, "", words.size ? `#${words}` : location.pathname);
}

export const linkTo = (view, words) => `${view}#${new URLSearchParams(words)}`;

// The select of base.html: the model that the address names, and each that is chosen later.
export function chosenModel(changed) {
  const select = byId("model"), wanted = state().model;
  if ([...select.options].some((option) => option.value === wanted)) select.value = wanted;
  select.addEventListener("change", () => {
    remember({ model: select.value });
    changed(select.value);
  });
  return select;
}

// ------------------------------------------------------------------------------------------- tables, files

// `rows` of texts and numbers, the first the heading, as a table.
export function table(rows, caption) {
  const cell = (tag, content, more = {}) => make(tag, { textContent: content, dir: "auto", ...more });
  const [heading, ...body] = rows;
  return make("table", { className: "twin" },
    make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, ...heading.map((text) => cell("th", text, { scope: "col" })))),
    make("tbody", {}, ...body.map(([first, ...rest]) =>
      make("tr", {}, cell("th", first, { scope: "row" }), ...rest.map((text) => cell("td", text))))));
}

// A table that is made when it is opened.
export function twin(caption, rows) {
  const details = make("details", {}, make("summary", { textContent: "Show as table" }));
  details.addEventListener("toggle", () => {
    details.querySelector(".scroll")?.remove();
    if (!details.open) return;
    const region = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: caption });
    region.append(table(rows(), caption));
    details.append(region);
  });
  return details;
}

export function download(name, content, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function csv(rows) {
  // A spreadsheet would run a text that begins like a formula.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text);
  return rows.map((row) => row.map((each) => `"${safe(String(each)).replaceAll('"', '""')}"`).join(",")).join("\r\n") + "\r\n";
}

export function button(text, work, properties = {}) {
  const node = make("button", { type: "button", className: "button", textContent: text, ...properties });
  node.addEventListener("click", work);
  return node;
}
