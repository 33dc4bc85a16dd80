// A Transformer by configuration, step by step, each step kept: what a layer computed is all in what it gives back.
// `p` finds a parameter by its name in the model's state_dict; `config` is a TransformerConfig as JSON; a sentence is
// x [token d_model]; mask(i, j) says whether query i may attend to key j.
import { distances, placed, rotated } from "./positions.js";
import {
  ACTIVATIONS, add, combine, join, layerNorm, linear, map, maskedSoftmax, rmsNorm, scaledDots, split, take, times,
} from "./tensors.js";

export const inside = (p, path) => (name) => p(`${path}.${name}`);

export const causal = (past = 0) => (i, j) => j <= past + i;

export const mapped = (p, name, x) => linear(x, p(`${name}.weight`), p(`${name}.bias`));

export function norm(p, config, x) {
  const gain = p("weight"), bias = p("bias");
  return config.normalizer === "layer" ? layerNorm(x, gain, bias, config.norm_eps) : rmsNorm(x, gain, config.norm_eps);
}

// Queries of x, keys and values of the memory: x itself, or in cross-attention another sentence's states.
export function attention(p, config, x, { memory = x, mask, positions } = {}) {
  const groups = config.n_kv_heads ?? config.n_heads;
  let q = split(mapped(p, "q", x), config.n_heads), k = split(mapped(p, "k", memory), groups);
  const v = split(mapped(p, "v", memory), groups);
  if (config.qk_norm) {
    q = rmsNorm(q, p("q_norm.weight"), config.norm_eps);
    k = rmsNorm(k, p("k_norm.weight"), config.norm_eps);
  }
  if (positions && config.positions === "rotary") [q, k] = [q, k].map((t) => rotated(config, t, positions));
  const bias = positions && config.positions === "alibi" ? distances(config.n_heads, positions, positions) : null;
  const scores = scaledDots(q, k, bias), weights = maskedSoftmax(scores, mask), heads = combine(weights, v);
  return { q, k, v, scores, weights, heads, out: mapped(p, "out", join(heads)) };
}

// W_2 f(W_1 x + b_1) + b_2, or gated W_2 (f(V x + c) * (W_1 x + b_1)) + b_2.
export function feedForward(p, config, x) {
  const f = ACTIVATIONS[config.activation], up = mapped(p, "up", x);
  const hidden = config.gated ? times(map(mapped(p, "gate", x), f), up) : map(up, f);
  return { up, hidden, out: mapped(p, "down", hidden) };
}

// x + layer(norm(x)) in the order "pre", norm(x + layer(x)) in the order "post".
function added(p, config, x, layer) {
  const kept = (y) => (config.residual ? add(x, y) : y);
  if (config.norm === "post") {
    const steps = layer(x);
    return { ...steps, sum: norm(p, config, kept(steps.out)) };
  }
  const steps = layer(config.norm === "pre" ? norm(p, config, x) : x);
  return { ...steps, sum: kept(steps.out) };
}

export function block(p, config, x, { mask, positions, memory, memoryMask } = {}) {
  const step = (name, from, layer) => added(inside(p, `${name}_norm`), config, from, layer);
  const own = step("attention", x, (y) => attention(inside(p, "attention"), config, y, { mask, positions }));
  const cross = memory && step("cross", own.sum, (y) =>
    attention(inside(p, "cross"), config, y, { memory, mask: memoryMask }));
  const middle = (cross ?? own).sum;
  const network = config.d_ff && step("feed_forward", middle, (y) => feedForward(inside(p, "feed_forward"), config, y));
  return { attention: own, cross, network, out: network ? network.sum : middle };
}

// E[token] + position + segment, perhaps normalised.
export function embed(p, config, tokens, { segments, positions }) {
  let x = take(p("embedding.weight"), tokens);
  if (config.embedding_scale) x = map(x, (value) => value * Math.sqrt(config.d_model));
  x = placed(p, config, x, positions);
  if (config.n_segments) x = add(x, take(p("segments.weight"), segments ?? tokens.map(() => 0)));
  return config.embedding_norm ? norm(inside(p, "embedding_norm"), config, x) : x;
}

// Ids through all blocks: `states`, the first of them the embedding, every block's steps, and what comes out.
export function stack(p, config, tokens, given = {}) {
  const positions = given.positions ?? tokens.map((_, i) => i);
  const states = [embed(p, config, tokens, { ...given, positions })], blocks = [];
  for (let n = 0; n < config.n_layers; n++) {
    blocks.push(block(inside(p, `blocks.${n}`), config, states[n], { ...given, positions }));
    states.push(blocks[n].out);
  }
  const last = config.final_norm ?? config.norm === "pre";
  return { states, blocks, out: last ? norm(inside(p, "norm"), config, states.at(-1)) : states.at(-1) };
}
