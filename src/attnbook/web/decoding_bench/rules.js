// Rules of DecodingBench that look beyond one place: what was written before, or several texts at once; no DOM.
import { ranked } from "../engine/sampling.js";
import { drawn } from "../prompt_bench/prompt.js";

export const RULES = [
  ["typical sampling, 0.9", { typical: 0.9 }],
  ["repetition penalty, 1.3", { penalty: 1.3 }],
  ["beams of 4, by the sum", { beam: 4, power: 0 }],
  ["beams of 4, by the mean", { beam: 4, power: 1 }],
];

// What the model says of a place are { order, logp, whole }: ids in falling order, their log-probabilities, and the
// logarithm that softmax took away of the scores. Each filter gives what it leaves, in this form, in falling order.

// The tokens whose surprise is nearest to the expected one, as few as have p together, and what is as near as the last.
export function typical({ order, logp }, p) {
  const expected = logp.reduce((sum, z) => (z === -Infinity ? sum : sum - Math.exp(z) * z), 0);
  const distance = Float64Array.from(logp, (z) => Math.abs(-z - expected));
  const near = Array.from(distance.keys()).sort((a, b) => distance[a] - distance[b]);
  let n = 0, sum = 0;
  while (n < near.length && sum < p) sum += Math.exp(logp[near[n++]]);
  const left = Array.from(distance.keys()).filter((k) => distance[k] <= distance[near[n - 1]]);
  return { order: left.map((k) => order[k]), logp: left.map((k) => logp[k]) };
}
// Scores of tokens that were read: those above 0 are divided, those below multiplied.
export function penalised({ order, logp, whole }, read, penalty) {
  const seen = new Set(read), u = Float64Array.from(logp, (z) => z + whole);
  u.forEach((z, k) => { if (seen.has(order[k])) u[k] = z < 0 ? z * penalty : z / penalty; });
  const by = ranked(u);
  return { order: Array.from(by, (k) => order[k]), logp: Array.from(by, (k) => u[k]) };
}

// Each takes `next`, which gives what the model says behind ids, the `ids` that it begins with, and { most, end }: it
// stops behind `most` tokens or the end token. `heard` is told the text so far. It gives { row, sum }: the text and its
// log-probability by the model; undefined, if `next` gave nothing.

// Numbers fall on what a filter leaves: those of a seed, from number `at` on.
export async function draws(next, ids, { most, end, typical: p, penalty, seed, at }, heard) {
  const row = [];
  let sum = 0;
  while (row.length < most && row.at(-1) !== end) {
    const read = [...ids, ...row], told = await next(read);
    if (!told) return undefined;
    const left = p ? typical(told, p) : penalised(told, read, penalty), id = drawn(left, 1, seed, at + row.length);
    row.push(id);
    sum += told.logp[told.order.indexOf(id)];
    heard(row);
  }
  return { row, sum };
}
// The `beam` best beginnings, each lengthened by each token, and so on; those that have ended stay and compete. What is
// compared is the sum of log-probabilities, divided by length^power.
export async function beams(next, ids, { most, end, beam, power }, heard) {
  const score = ({ row, sum }) => sum / row.length ** power, ended = ({ row }) => row.at(-1) === end;
  let kept = [{ row: [], sum: 0 }];
  for (let n = 0; n < most && !kept.every(ended); n++) {
    const found = kept.filter(ended);
    for (const { row, sum } of kept.filter((each) => !ended(each))) {
      const told = await next([...ids, ...row]);
      if (!told) return undefined;
      for (let k = 0; k < beam; k++) found.push({ row: [...row, told.order[k]], sum: sum + told.logp[k] });
    }
    kept = found.sort((a, b) => score(b) - score(a)).slice(0, beam);
    heard(kept[0].row);
  }
  return kept[0];
}
