// What models say of sounds: what is spoken, with its times, or which kind of sound it is; of files, or of the microphone.
import { askOf, button, byId, chosenModel, csv, download, latest, make, models, percent, takeFiles, trouble, twin } from "./common.js";
import { wav } from "./wav.js";

const MOST = 8; // files at a time
const known = await models();
let files = [], recorder = null;

const verbOf = () => Object.entries(known[byId("model").value].verbs).find(([, { reads }]) => reads === "sounds")[0];

// By verb: what an answer says, and the same as a table.
const VERBS = {
  transcribe: ({ text, segments }) => ({ text: text || "Nothing is said.", rows: [["from", "to", "text"], ...segments.map(({ start, end, text }) => [start, end, text])] }),
  classify: ({ labels }) => ({ text: labels.slice(0, 5).map(({ label, score }) => `${label} ${percent(score)}`).join("\n"), rows: [["label", "probability"], ...labels.map(({ label, score }) => [label, score.toFixed(4)])] }),
};

const send = latest(
  (signal) => {
    byId("busy").textContent = "Listening …";
    return askOf(files, verbOf(), { model: byId("model").value }, signal);
  },
  (answers) => {
    byId("busy").textContent = "";
    byId("found").replaceChildren(...answers.map((answer, i) => card(files[i].name, VERBS[verbOf()](answer))));
  },
  () => {
    byId("busy").textContent = "";
    byId("found").replaceChildren(); // what is there would be of other sounds, or another model
  },
);

function card(name, { text, rows }) {
  const stem = name.replace(/\.[^.]*$/, "") || "sound";
  return make("article", { className: "card wide" },
    make("h2", {}, make("bdi", { textContent: name })),
    make("p", { className: "readout written", dir: "auto", textContent: text }),
    twin(`What was heard in ${name}`, () => rows),
    make("p", {}, button("CSV", () => download(`${stem}.csv`, csv(rows), "text/csv"))));
}

function take(list) {
  if (!list.length) return;
  files = [...list].slice(0, MOST);
  send();
}

// A click begins, the next one ends.
async function record() {
  if (recorder) return recorder.stop();
  byId("record").disabled = true;
  try {
    if (!navigator.mediaDevices) throw new Error("A browser gives the microphone to this machine's own address, or to https alone.");
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const pieces = [];
    recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
    recorder.addEventListener("stop", async () => {
      recorder = null;
      byId("record").textContent = "Record";
      for (const track of stream.getTracks()) track.stop();
      try {
        take([await wav(new Blob(pieces), "recording.wav")]);
      } catch {
        trouble(new Error("There is no sound in what was recorded: record for longer."));
      }
    });
    recorder.start();
    byId("record").textContent = "Stop";
    trouble(null);
  } catch (error) {
    trouble(error);
  }
  byId("record").disabled = false;
}

byId("record").addEventListener("click", record);
takeFiles(take);
chosenModel(() => files.length && send());
take(byId("files").files); // chosen before this script was there
