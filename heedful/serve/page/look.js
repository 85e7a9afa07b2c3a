// Asks what a model looked at, and hands it to the scripts of the page that is one file (page_*.js), or, of a picture,
// to image.js. The address has the question before its "#", and what is chosen of the answer after it.
import * as formats from "./formats.js";
import { ask, button, byId, download, make, models, reached, trouble } from "./common.js";
import { drawImage } from "./image.js";
import { chosenLanguages, offer } from "./languages.js";

Object.assign(globalThis, formats); // for the scripts of that page, which are no modules
const SCRIPTS = ["page_state.js", "page_maps.js", "page_views.js", "page_steps.js", "page_walk.js", "page.js"];
const FIELDS = ["text", "target", "pair", "sentence"], LANGUAGES = ["from_language", "to"];
const known = await models();
const select = byId("model");

const moved = new URLSearchParams(location.hash.slice(1)); // another view's link has the question after the "#"
if (moved.has("model")) {
  location.replace(`look?${moved}`);
  await new Promise(() => {}); // ask nothing until this page is left
}

const asked = new URLSearchParams(location.search);
const reads = () => Object.values(known[select.value].verbs).some((verb) => verb.reads === "pictures") ? "pictures" : "texts";

function fields() {
  const { looks_with: options } = known[select.value], pictures = reads() === "pictures";
  byId("field-text").hidden = pictures;
  byId("field-file").hidden = !pictures;
  for (const name of ["target", "pair", "sentence"]) byId(`field-${name}`).hidden = pictures || !options.includes(name);
  byId("field-texts").hidden = !options.includes("shown");
  byId("field-asked").hidden = !options.includes("question");
}

function load(source) {
  return new Promise((resolve, reject) => {
    const script = make("script", { src: `page/${source}` });
    script.addEventListener("load", resolve);
    script.addEventListener("error", reject);
    document.body.append(script);
  });
}

async function show(question) {
  const view = await ask("view", question);
  const { model, target, pair } = question, text = question.options ? view.title : question.text; // of one sentence
  const steps = "steps" in known[model].verbs ? "api/steps" : null;
  const languages = Object.fromEntries(LANGUAGES.filter((name) => name in question).map((name) => [name, question[name]]));
  view.live = { model, text, target, pair, languages, steps, beam: known[model].verbs.steps?.options.includes("beam") };
  byId("heading").replaceChildren(make("bdi", { textContent: view.title }), ...(view.said ? [" → ", make("bdi", { textContent: view.said })] : []));
  byId("about").textContent = `${view.about ? `${view.about}. ` : ""}Attention shows where information could flow, not why.`;
  document.title = `${view.title} · heedful`;
  byId("inside").hidden = false;
  document.body.append(make("script", { type: "application/json", id: "view", textContent: JSON.stringify(view) }));
  for (const source of SCRIPTS) await load(source);
  const save = async (kind, type) => {
    const response = await reached("api/view", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...question, kind }),
    });
    if (response.ok) download(`attention.${kind}`, await response.blob(), type);
    else trouble(new Error((await response.json()).error.message));
  };
  byId("inside").append(make("p", {}, "Save: ",
    button("this page as one file", () => save("html", "text/html")),
    button("SVG", () => save("svg", "image/svg+xml")),
    button("PNG", () => save("png", "image/png"))));
}

async function showImage() {
  const [file] = byId("file").files;
  if (!file) throw new Error("Choose a picture first.");
  const model = select.value, shown = texts();
  if (shown.shown?.length === 0) throw new Error("Type the texts to look for, one a line.");
  const view = async (more = {}, signal) => {
    const form = new FormData();
    form.append("file", file);
    form.append("json", JSON.stringify({ model, options: { ...more, ...shown } }));
    const response = await reached("api/view", { method: "POST", body: form, signal });
    const found = await response.json();
    if (!response.ok) throw new Error(found.error.fix ? `${found.error.message}: ${found.error.fix}` : found.error.message);
    return found;
  };
  drawImage(byId("image"), await view(), view);
}

function texts() {
  if (!byId("field-asked").hidden && byId("asked").value.trim()) return { question: byId("asked").value.trim() };
  if (byId("field-texts").hidden) return {};
  return { shown: byId("shown").value.split("\n").filter((line) => line.trim()) };
}

// Figure 1 of the model, asked for when it is opened.
function whole() {
  const place = byId("whole"), path = `api/models/${encodeURIComponent(select.value)}/figure`;
  place.querySelector("a")?.remove();
  if (!place.open) return;
  const dark = make("source", { srcset: `${path}?dark=1`, media: "(prefers-color-scheme: dark)" });
  const image = make("picture", {}, dark, make("img", { src: path, alt: `The architecture of ${select.value}` }));
  place.append(make("a", { href: matchMedia(dark.media).matches ? dark.srcset : path, title: "By itself" }, image));
}

if (asked.has("model") && asked.get("model") in known) select.value = asked.get("model");
for (const name of FIELDS) byId(name).value = asked.get(name) ?? (name === "sentence" ? 1 : "");
if (!asked.has("text")) byId("text").value = known[select.value].example;
offer(known[select.value], Object.fromEntries(asked));
fields();
let chosen = select.value;
select.addEventListener("change", () => {
  const text = byId("text").value.trim(), untouched = !text || text === known[chosen].example;
  chosen = select.value;
  if (untouched) location.href = `look?${new URLSearchParams({ model: chosen })}`; // with its own example
  offer(known[chosen], chosenLanguages());
  fields();
  whole();
});
byId("whole").addEventListener("toggle", whole);
whole(); // it may be open already
byId("question").addEventListener("submit", (event) => {
  event.preventDefault();
  if (reads() === "pictures") {
    trouble(null);
    showImage().catch(trouble);
    return;
  }
  const words = new URLSearchParams({ model: select.value });
  for (const [name, value] of Object.entries(chosenLanguages())) if (value) words.set(name, value);
  for (const name of FIELDS) if (!byId(`field-${name}`).hidden && byId(name).value) words.set(name, byId(name).value);
  location.href = `look?${words}`;
});

// What the address asks, or the model's example.
if (reads() === "texts" && (asked.has("text") || known[select.value].example)) {
  const question = { model: select.value, text: byId("text").value };
  for (const name of ["text", "target", "pair", ...LANGUAGES]) if (asked.get(name)) question[name] = asked.get(name);
  if (Number(asked.get("sentence")) > 1) question.options = { sentence: Number(asked.get("sentence")) };
  show(question).catch((error) => {
    if (asked.has("text")) trouble(error);
    else byId("about").textContent = `${error.message}.`; // such as a second text
  });
}
