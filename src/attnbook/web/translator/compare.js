// Finds what is wrong in a translation. No DOM.

// Aligns the written words with the true ones, with as few changes as possible: for each place, what the word `is` and
// what it `should` be, null if either is missing, and its index `at` in `written` or -1.
export function compare(written, truth) {
  const cost = Array.from({ length: written.length + 1 }, (_, i) => [i]);
  for (let j = 1; j <= truth.length; j++) cost[0][j] = j;
  for (let i = 1; i <= written.length; i++) {
    for (let j = 1; j <= truth.length; j++) {
      const same = cost[i - 1][j - 1] + Number(written[i - 1] !== truth[j - 1]);
      cost[i][j] = Math.min(same, cost[i - 1][j] + 1, cost[i][j - 1] + 1);
    }
  }
  const places = [];
  for (let i = written.length, j = truth.length; i || j;) {
    const now = cost[i][j], paired = i && j && now === cost[i - 1][j - 1] + Number(written[i - 1] !== truth[j - 1]);
    const extra = !paired && i && now === cost[i - 1][j] + 1;
    if (paired || extra) i--;
    if (paired || !extra) j--;
    places.push({ is: paired || extra ? written[i] : null, should: paired || !extra ? truth[j] : null,
      at: paired || extra ? i : -1 });
  }
  return places.reverse();
}
export const wrong = ({ is, should }) => is !== should;
