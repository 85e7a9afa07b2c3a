// One format for each kind of number, on all pages, and the names of the marks among tokens.

const minus = (text) => text.replace(/^-(?=[\d.]*[1-9])/, "\u2212").replace(/^-/, ""); // never "-0.00"
const fixed = (value, digits) => minus(value.toFixed(digits));

// Probabilities, confidence, and shares of a whole: 98.4 %.
export const percent = (share) => (share > 0.9995 ? "100 %" : share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

// Attention weights, and other numbers from 0 to 1 that are no probabilities: 0.63.
export const decimal = (value) => (value > 0 && value < 0.005 ? "< 0.01" : value.toFixed(2));

// How spread weights or probabilities are: 1.09 bits.
export const bits = (value) => `${fixed(value, 2)} bits`;

// Log-probabilities and the scores of translations: −0.251 nats.
export const nats = (value) => `${fixed(value, 3)} nats`;

// The components of vectors, and their products: −1.890.
export const signed = (value) => fixed(value, 3);

// Counts, and measurements of any size: 2,433,280, 97.9, 0.475.
export function number(value) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 100) return minus(value.toLocaleString("en", { maximumFractionDigits: 0 }));
  return size >= 10 ? fixed(value, 1) : size >= 0.001 || size === 0 ? fixed(value, 3) : minus(value.toExponential(1));
}

// Scores as a terminal prints them, and their names: "bleu on test" is "BLEU on test". Those are of metrics/names.py.
const OF_100 = { bleu: "BLEU", chrf: "chrF", ter: "TER", rouge1: "ROUGE-1", rouge2: "ROUGE-2", rougeL: "ROUGE-L" };
const OF_1 = { map: "mAP", map50: "mAP@0.5", map75: "mAP@0.75", miou: "mean IoU" };
export const scoreName = (key) => key.replace(/^\S+/, (name) => OF_100[name] ?? OF_1[name] ?? name.replaceAll("_", " "));
export const score = (key, value) => (key.split(" ")[0] in OF_100 ? fixed(value, 1) : number(value));

// When something was, in local time, from seconds since 1970: 2026-11-28 06:35.
export function date(seconds) {
  const when = new Date(1000 * seconds), two = (value) => String(value).padStart(2, "0");
  return `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())} ${two(when.getHours())}:${two(when.getMinutes())}`;
}

// What the marks say that a model reads beside the words of a text.
export const MARKS = {
  "<s>": "begins a text", "</s>": "ends a text", "<pad>": "fills a row", "<unk>": "stands for what the vocabulary lacks",
  "<mask>": "hides a token", "<cls>": "stands for the whole text", "<sep>": "ends a part of a text",
  "<delimiter>": "stands between two texts", "<extract>": "stands at the end: a classifier answers from what the model has read there",
};
