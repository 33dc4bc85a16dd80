// Which attention of a model is drawn, and what its rows and columns are. No DOM.

// A Transformer's attentions: the part and the block that each number stands for.
const PARTS = ["cross", "encoder", "decoder"];
export const BLOCKS = 2;
const LONGEST = 32; // most words of a translation, including its end
export const NAMES = ["cross-attention", "self-attention, encoder", "self-attention, decoder"].flatMap((name) =>
  Array.from({ length: BLOCKS }, (_, l) => `${name}, block ${l + 1}`));
export const partOf = (attention) => PARTS[Math.floor(attention / BLOCKS)];
export const blockOf = (attention) => attention % BLOCKS;

// Vector i of head l of a [head row d] tensor, and a list of all vectors of that head.
const vector = ({ data, shape: [, n, d] }, l, i) => data.subarray((l * n + i) * d, (l * n + i + 1) * d);
const vectors = (x, l) => Array.from({ length: x.shape[1] }, (_, i) => vector(x, l, i));

const mapsOf = ({ weights }) =>
  Array.from({ length: weights.shape[0] }, (_, l) => vectors(weights, l).map((row) => [...row]));

// What the cross-attention of a block did when word i was written, in the form of a recurrent translator's answer.
function stepOf({ q, k, v, scores, weights, heads, out }, i) {
  const headOf = (_, l) => ({
    query: vector(q, l, i), keys: vectors(k, l), values: vectors(v, l), scores: [...vector(scores, l, i)],
    weights: [...vector(weights, l, i)], mean: vector(heads, l, i),
  });
  const size = out.shape[1];
  return { heads: Array.from({ length: q.shape[0] }, headOf), context: out.data.subarray(i * size, (i + 1) * size) };
}

// The words at the rows and columns of a map, and which of them are German. The decoder's rows are the words that it
// wrote, its columns those that it had read, at most LONGEST.
function axes(part, words, written) {
  const [wrote, start] = [[...written, "(end)"], ["(start)", ...written].slice(0, LONGEST)];
  if (part === "encoder") return { rows: words, columns: words, german: {} };
  if (part === "decoder") return { rows: wrote, columns: start, german: { rows: true, columns: true } };
  return { rows: wrote, columns: words, german: { rows: true } };
}

// An answer as it is drawn, with `maps` [head row column]. It comes from the engine or, without `steps`, from storage;
// a stored answer has the maps of only one attention.
export function seen(told, words, attention) {
  if (!told) return told;
  const { looked, steps } = told;
  if (!looked) {
    const heads = steps?.[0].heads ?? [], part = partOf(told.attention ?? 0);
    const maps = told.maps ?? heads.map((_, l) => steps.map((step) => step.heads[l].weights));
    return { ...told, maps, part, ...axes(part, words, told.written) };
  }
  const part = partOf(attention), block = blockOf(attention);
  const drawn = { maps: mapsOf(looked[part][block]), part, block, ...axes(part, words, told.written) };
  return { ...told, ...drawn, steps: steps.map((step, i) => ({ ...step, ...stepOf(looked.cross[block], i) })) };
}
