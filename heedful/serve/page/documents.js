// Documents: sent, watched while they are translated, and saved.
import { Refusal, button, byId, get, make, number, reached, trouble } from "./common.js";
import { terms } from "./glossary.js";

const FLAG = 0.4; // the confidence below which a sentence is marked
const AGAIN = 700; // milliseconds
const running = new Set(); // the ids of those that are not here yet
let model = null, languages = () => ({});

// For this model, and with the languages that are chosen when a document is sent.
export function documents(chosen, how) {
  [model, languages] = [chosen, how];
  byId("documents").hidden = !model.documents;
}

const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function answer(path, how) {
  const response = await reached(path, how);
  if (!response.ok) throw new Refusal(response.status, (await response.json().catch(() => ({}))).error);
  return response;
}

async function translate(file) {
  const status = make("span", { className: "quiet", role: "status", textContent: "sending" }), progress = make("progress", { max: 1, value: 0, ariaLabel: file.name });
  const controls = make("span", { className: "row" }), told = make("div");
  const item = make("li", { className: "card" }, make("div", { className: "head" }, make("b", {}, make("bdi", { textContent: file.name })), status, controls), progress, told);
  byId("sent").prepend(item);
  let id = null;
  controls.append(button("Remove", () => {
    item.remove();
    if (running.delete(id)) fetch(`api/documents/${id}`, { method: "DELETE" });
  }, { ariaLabel: `Remove ${file.name}` }));
  try {
    const options = { ...terms(), ...(byId("flag").checked ? { flag: FLAG } : {}) }, form = new FormData();
    form.append("file", file);
    form.append("json", JSON.stringify({ model: model.name, ...languages(), options }));
    let state = await (await answer("api/documents", { method: "POST", body: form })).json();
    ({ id } = state);
    running.add(id);
    while (item.isConnected && ["queued", "translating"].includes(state.status)) {
      status.textContent = state.passages ? `${number(state.translated)} of ${number(state.passages)} passages` : { queued: "waiting for its turn", translating: "reading" }[state.status];
      if (state.passages) Object.assign(progress, { max: state.passages, value: state.translated });
      else progress.removeAttribute("value");
      await wait(AGAIN);
      if (item.isConnected) state = await get(`api/documents/${id}`);
    }
    if (!item.isConnected) return;
    if (state.error) throw new Refusal(0, state.error);
    const blob = await (await answer(`api/documents/${id}/file`)).blob();
    const link = make("a", { href: URL.createObjectURL(blob), download: state.translated_name, textContent: `Save ${state.translated_name}` });
    controls.prepend(link);
    const { passages, warnings } = state;
    status.textContent = `${number(passages)} ${passages === 1 ? "passage" : "passages"}, translated${warnings.length ? `, ${number(warnings.length)} to check` : ""}`;
    if (warnings.length) {
      const list = make("ul", { className: "warnings" }, ...warnings.map((textContent) => make("li", { textContent, dir: "auto" })));
      told.append(make("details", { open: warnings.length < 6 }, make("summary", { textContent: "To check" }), list));
    }
  } catch (error) {
    status.textContent = "not translated";
    told.append(make("p", { className: "wrong", textContent: error.message }));
  } finally {
    running.delete(id);
    progress.remove();
  }
}

function take(files) {
  if (!files.length) return;
  if (!model.documents) return trouble(new Error(`${model.name} translates no documents.`));
  trouble(null);
  for (const file of files) translate(file);
}

byId("files").addEventListener("change", (event) => { take([...event.target.files]); event.target.value = ""; });
for (const event of ["dragover", "drop"]) {
  document.addEventListener(event, (dragged) => { // anywhere: a browser would leave the page for a file
    if (!dragged.dataTransfer.types.includes("Files")) return;
    dragged.preventDefault();
    byId("drop").classList.toggle("ready", event === "dragover");
    if (event === "drop") take([...dragged.dataTransfer.files]);
  });
}
document.addEventListener("dragleave", (dragged) => dragged.relatedTarget === null && byId("drop").classList.remove("ready"));
addEventListener("pagehide", () => { for (const id of running) fetch(`api/documents/${id}`, { method: "DELETE", keepalive: true }); });
