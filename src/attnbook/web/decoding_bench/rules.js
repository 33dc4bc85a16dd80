// The other rules of DecodingBench: typical sampling, a repetition penalty, and beam search; no DOM.
import { ranked } from "../engine/sampling.js";
import { drawn } from "../prompt_bench/prompt.js";

export const RULES = [
  ["typical sampling, 0.9", { typical: 0.9 }],
  ["repetition penalty, 1.3", { penalty: 1.3 }],
  ["beams of 4, by the sum", { beam: 4, power: 0 }],
  ["beams of 4, by the mean", { beam: 4, power: 1 }],
];

// The model's answer for a place is { order, logp, whole }: ids in falling order, their log-probabilities, and the
// log-sum-exp that was subtracted from the logits. Each filter returns { order, logp } of what it leaves, in falling
// order and not normalised.

// The tokens whose surprisal is nearest to the entropy: the fewest that together have p, and any as near as the last.
export function typical({ order, logp }, p) {
  const expected = logp.reduce((sum, z) => (z === -Infinity ? sum : sum - Math.exp(z) * z), 0);
  const distance = Float64Array.from(logp, (z) => Math.abs(-z - expected));
  const near = Array.from(distance.keys()).sort((a, b) => distance[a] - distance[b]);
  let n = 0, sum = 0;
  while (n < near.length && sum < p) sum += Math.exp(logp[near[n++]]);
  const left = Array.from(distance.keys()).filter((k) => distance[k] <= distance[near[n - 1]]);
  return { order: left.map((k) => order[k]), logp: left.map((k) => logp[k]) };
}
// Penalises the tokens that were read: logits above 0 are divided by the penalty, those below multiplied.
export function penalised({ order, logp, whole }, read, penalty) {
  const seen = new Set(read), u = Float64Array.from(logp, (z) => z + whole);
  u.forEach((z, k) => { if (seen.has(order[k])) u[k] = z < 0 ? z * penalty : z / penalty; });
  const by = ranked(u);
  return { order: Array.from(by, (k) => order[k]), logp: Array.from(by, (k) => u[k]) };
}

// Each takes `next`, which returns the model's answer after given ids, the `ids` to begin with, and { most, end }: it
// stops after `most` tokens or at the end token. `heard` receives the text so far. Returns { row, sum }, the new tokens
// and their log-probability under the model, or undefined if `next` returned nothing.

// Draws from what a filter leaves, with the random numbers of a seed from number `at` on.
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
// Extends the `beam` best beginnings by their likeliest tokens, keeps the `beam` best of these, and so on; those that
// have ended stay and compete. They are compared by their sum of log-probabilities, divided by length^power.
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
