// Draws the next token as `attnbook.model.sampling` does, in 64 bits: scores are sorted in falling
// order, filters keep the first of them, and a number from 0 to 1 falls on one.

// The ids of scores in falling order; ties are in the order of their ids, -Infinity is last.
// Sorting numbers is fast, sorting ids with a comparator is not: so each score's distance below
// the highest is sorted, with its id in the last 20 of 52 bits. Scores that only these bits told
// apart are put in order afterwards.
const IDS = 2 ** 20 - 1;
export function ranked(logits) {
  const highest = logits.reduce((a, b) => Math.max(a, b));
  const below = Float64Array.from(logits, (z) => Math.min(highest - z, Number.MAX_VALUE));
  const words = new Uint32Array(below.buffer);
  below.forEach((_, id) => (words[2 * id] = (words[2 * id] & ~IDS) | id));
  below.sort();
  const order = Uint32Array.from(below, (_, n) => words[2 * n] & IDS);
  for (let n = 1; n < order.length; n++) {
    const id = order[n];
    let to = n;
    for (; to > 0 && logits[order[to - 1]] < logits[id]; to--) order[to] = order[to - 1];
    order[to] = id;
  }
  return order;
}

// The log softmax of scores in falling order, the ids in this order, the log-sum-exp `whole` that
// was subtracted, and the entropy in bits.
export function inOrder(logits) {
  const order = ranked(logits), most = logits[order[0]];
  const sum = Math.log(logits.reduce((all, z) => all + Math.exp(z - most), 0));
  const logp = Float64Array.from(order, (id) => logits[id] - most - sum);
  const nats = logp.reduce((all, z) => (z === -Infinity ? all : all - Math.exp(z) * z), 0);
  return { order, logp, whole: most + sum, bits: Math.max(0, nats / Math.LN2) };
}

// What the filters leave of scores z in falling order. `widths` are exp((z - the highest) / t),
// `ends` their cumulative sums; at t = 0 the first token gets everything. Top-k keeps the k
// likeliest tokens and any that tie with the last of them; 0 is off. Top-p keeps the fewest that
// together have the share `topP` of what is left, and any that tie with the last of them. Min-p keeps
// those with at least `minP` times the probability of the likeliest. Each filters what the previous
// one left: `stages` says how many tokens that is, and their probability.
export function leave(z, { temperature, topK, topP, minP }) {
  const widths = new Float64Array(z.length), ends = new Float64Array(z.length), stages = {};
  let count = temperature > 0 ? z.length : 1, sum = 0;
  while (z[count - 1] === -Infinity) count -= 1;
  for (let i = 0; i < count; i++) {
    widths[i] = i ? Math.exp((z[i] - z[0]) / temperature) : 1;
    ends[i] = sum += widths[i];
  }
  const stage = (name, n) => (stages[name] = { count: (count = n), mass: ends[n - 1] / sum });
  const alike = (n) => {
    while (n < count && z[n] === z[n - 1]) n += 1;
    return n;
  };
  stage("topK", alike(topK > 0 ? Math.min(topK, count) : count));
  let n = topP < 1 ? 1 : count;
  while (n < count && ends[n - 1] < topP * ends[count - 1]) n += 1;
  stage("topP", alike(n));
  let m = 1;
  while (m < count && widths[m] >= minP) m += 1;
  return { widths, ends, sum, stages, ...stage("minP", m) };
}

// The token that `number`, 0 <= number < 1, falls on when the remaining tokens are laid side by
// side, the likeliest first: its rank, and its interval.
export function fall({ ends, count }, number) {
  const whole = ends[count - 1];
  let rank = 0;
  while (ends[rank] <= number * whole) rank += 1; // stops at the last end: number < 1 keeps the product below it
  return { rank, from: rank ? ends[rank - 1] / whole : 0, to: ends[rank] / whole };
}
