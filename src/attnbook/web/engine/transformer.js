// A configurable Transformer that keeps every step: each layer returns everything it computed. `p` finds a parameter by
// its name in the model's state_dict; `config` is a TransformerConfig as JSON; a sentence is x [token d_model];
// mask(i, j) says whether query i may attend to key j.
import { ACTIVATIONS, SLOPES } from "./activations.js";
import { distances, placed, rotated } from "./positions.js";
import {
  add, combine, join, layerNorm, linear, map, maskedSoftmax, rmsNorm, scaled, scaledDots, split, take, times, zeros,
} from "./tensors.js";

export const inside = (p, path) => (name) => p(`${path}.${name}`);

export const causal = (past = 0) => (i, j) => j <= past + i;

export const activated = ({ activation }, x) => map(x, ACTIVATIONS[activation], SLOPES[activation]);
export const mapped = (p, name, x) => linear(x, p(`${name}.weight`), p(`${name}.bias`));

export function norm(p, config, x) {
  const gain = p("weight"), bias = p("bias");
  return config.normalizer === "layer" ? layerNorm(x, gain, bias, config.norm_eps) : rmsNorm(x, gain, config.norm_eps);
}

// Keys or values [group token d] followed by those of later tokens, and those of the first n tokens alone.
function behind(x, more) {
  const [groups, n, d] = x.shape, m = more.shape[1], out = zeros(groups, n + m, d);
  for (let g = 0; g < groups; g++) {
    out.data.set(x.data.subarray(g * n * d, (g + 1) * n * d), g * (n + m) * d);
    out.data.set(more.data.subarray(g * m * d, (g + 1) * m * d), (g * (n + m) + n) * d);
  }
  return out;
}
function first({ data, shape: [groups, m, d] }, n) {
  const out = zeros(groups, n, d);
  for (let g = 0; g < groups; g++) out.data.set(data.subarray(g * m * d, (g * m + n) * d), g * n * d);
  return out;
}

// What an attention layer keeps of the first n tokens it has read: keys, values and places.
export const kept = ({ k, v, places }, n = places.length) =>
  (n === places.length ? { k, v, places } : { k: first(k, n), v: first(v, n), places: places.slice(0, n) });

// Queries come from x, keys and values from `memory`: x itself or, in cross-attention, another sentence's states.
// `past` is what `kept` returned for the tokens before x.
export function attention(p, config, x, { memory = x, mask, positions, past, batch } = {}) {
  const groups = config.n_kv_heads ?? config.n_heads;
  let q = split(mapped(p, "q", x), config.n_heads, batch), k = split(mapped(p, "k", memory), groups, batch);
  let v = split(mapped(p, "v", memory), groups, batch), places = positions;
  if (config.qk_norm) {
    q = rmsNorm(q, p("q_norm.weight"), config.norm_eps);
    k = rmsNorm(k, p("k_norm.weight"), config.norm_eps);
  }
  if (positions && config.positions === "rotary") [q, k] = [q, k].map((t) => rotated(config, t, positions));
  if (past) [k, v, places] = [behind(past.k, k), behind(past.v, v), [...past.places, ...positions]];
  const bias = positions && config.positions === "alibi" ? distances(config.n_heads, positions, places) : null;
  const scores = scaledDots(q, k, bias), weights = maskedSoftmax(scores, mask), heads = combine(weights, v);
  return { q, k, v, places, scores, weights, heads, out: mapped(p, "out", join(heads, batch)) };
}

// W_2 f(W_1 x + b_1) + b_2, or gated W_2 (f(V x + c) * (W_1 x + b_1)) + b_2.
export function feedForward(p, config, x) {
  const f = (y) => activated(config, y), up = mapped(p, "up", x);
  const hidden = config.gated ? times(f(mapped(p, "gate", x)), up) : f(up);
  return { up, hidden, out: mapped(p, "down", hidden) };
}

// x + layer(norm(x)) for "pre", norm(x + layer(x)) for "post", x + layer(x) for "none".
function added(p, config, x, layer) {
  const kept = (y) => (config.residual ? add(x, y) : y);
  if (config.norm === "post") {
    const steps = layer(x);
    return { ...steps, sum: norm(p, config, kept(steps.out)) };
  }
  const steps = layer(config.norm === "pre" ? norm(p, config, x) : x);
  return { ...steps, sum: kept(steps.out) };
}

export function block(p, config, x, { mask, positions, past, batch, memory, memoryMask } = {}) {
  const step = (name, from, layer) => added(inside(p, `${name}_norm`), config, from, layer);
  const own = step("attention", x, (y) =>
    attention(inside(p, "attention"), config, y, { mask, positions, past, batch }));
  const cross = memory && step("cross", own.sum, (y) =>
    attention(inside(p, "cross"), config, y, { memory, mask: memoryMask, batch }));
  const middle = (cross ?? own).sum;
  const network = config.d_ff && step("feed_forward", middle, (y) => feedForward(inside(p, "feed_forward"), config, y));
  return { attention: own, cross, network, out: network ? network.sum : middle };
}

// E[token] + position + segment, normalised if configured so.
export function embed(p, config, tokens, { segments, positions, batch }) {
  let x = take(p("embedding.weight"), tokens);
  if (config.embedding_scale) x = scaled(x, Math.sqrt(config.d_model));
  x = placed(p, config, x, positions, batch);
  if (config.n_segments) x = add(x, take(p("segments.weight"), segments ?? tokens.map(() => 0)));
  return config.embedding_norm ? norm(inside(p, "embedding_norm"), config, x) : x;
}

// Passes ids through all blocks: returns `states`, the first of which is the embedding, every block's steps, and the
// output. `past` has what each block's attention kept of the tokens before. A `batch` is that many sentences of one
// length, concatenated, all at the same positions and without a past.
export function stack(p, config, tokens, { past, ...given } = {}) {
  const before = past?.[0].places.length ?? 0, n = tokens.length / (given.batch ?? 1);
  const positions = given.positions ?? tokens.map((_, i) => before + (i % n));
  const states = [embed(p, config, tokens, { ...given, positions })], blocks = [];
  for (let l = 0; l < config.n_layers; l++) {
    blocks.push(block(inside(p, `blocks.${l}`), config, states[l], { ...given, positions, past: past?.[l] }));
    states.push(blocks[l].out);
  }
  const last = config.final_norm ?? config.norm === "pre";
  return { states, blocks, out: last ? norm(inside(p, "norm"), config, states.at(-1)) : states.at(-1) };
}
