// Words that differ: those outside of the longest common subsequence of two texts.

const MOST_PAIRS = 1 << 22; // of words that are compared
const words = new Intl.Segmenter(undefined, { granularity: "word" }); // also where no spaces stand between them
export const wordsOf = (text) => [...words.segment(text)].map(({ segment }) => segment);
const told = (list, differs) => list.map((text) => ({ text, differs }));

// Two lists of {text, differs}, one for each text.
export function differing(one, other) {
  const [a, b] = [wordsOf(one), wordsOf(other)];
  let [start, end] = [0, 0];
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middles = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [a, b].map((side, i) => [...told(side.slice(0, start), false), ...middles[i], ...told(side.slice(side.length - end), false)]);
}

function between(a, b) {
  if (a.length * b.length > MOST_PAIRS) return [told(a, true), told(b, true)];
  const length = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const sides = [[], []];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      sides[0].push({ text: a[i++], differs: false });
      sides[1].push({ text: b[j++], differs: false });
    } else if (j === b.length || (i < a.length && length[i + 1][j] >= length[i][j + 1])) {
      sides[0].push({ text: a[i++], differs: true });
    } else {
      sides[1].push({ text: b[j++], differs: true });
    }
  }
  return sides;
}
