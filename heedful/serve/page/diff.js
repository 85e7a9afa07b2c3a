// Words that differ: those outside of the longest common subsequence of two texts.

const wordsOf = (text) => text.match(/\s+|[^\s]+/gu) ?? [];

// Two lists of {text, differs}, one for each text.
export function differing(one, other) {
  const [a, b] = [wordsOf(one), wordsOf(other)];
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
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
