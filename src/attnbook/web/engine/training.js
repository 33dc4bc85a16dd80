// What training adds to a Transformer: initial parameters, the logits of the next token, and their loss.
import { generator } from "./random.js";
import { gradient, made } from "./tape.js";
import { linear, zeros } from "./tensors.js";
import { inside, stack } from "./transformer.js";

export const IGNORED = -100; // a target that the loss ignores, as in PyTorch

// The names and shapes of a TransformerDecoder's parameters, and PyTorch's initial distributions: uniform from -`flat`
// to `flat`, normal with standard deviation `normal`, or `all` the same number.
export function declared(config, size) {
  const { d_model: d, n_heads, d_ff, n_layers } = config, all = [];
  const head = config.d_head ?? d / n_heads, groups = config.n_kv_heads ?? n_heads;
  const map = (name, out, from, bias = config.bias) => {
    all.push([`${name}.weight`, [out, from], { flat: from ** -0.5 }]);
    if (bias) all.push([`${name}.bias`, [out], { flat: from ** -0.5 }]);
  };
  const norm = (name, length = d, kind = config.normalizer) => {
    all.push([`${name}.weight`, [length], { all: 1 }]);
    if (kind === "layer") all.push([`${name}.bias`, [length], { all: 0 }]);
  };
  all.push(["stack.embedding.weight", [size, d], { normal: d ** -0.5 }]);
  const places = ["stack.positions.embedding.weight", [config.max_len, d], { normal: 1 }];
  if (config.positions === "learned") all.push(places);
  if (config.n_segments) all.push(["stack.segments.weight", [config.n_segments, d], { normal: 1 }]);
  if (config.embedding_norm) norm("stack.embedding_norm");
  for (let l = 0; l < n_layers; l++) {
    const path = `stack.blocks.${l}`, ends = [["q", n_heads], ["k", groups], ["v", groups]];
    for (const [name, count] of ends) map(`${path}.attention.${name}`, count * head, d);
    map(`${path}.attention.out`, d, n_heads * head);
    if (config.qk_norm) for (const name of ["q_norm", "k_norm"]) norm(`${path}.attention.${name}`, head, "rms");
    if (config.norm !== "none") norm(`${path}.attention_norm`);
    if (!d_ff) continue;
    for (const name of config.gated ? ["up", "gate"] : ["up"]) map(`${path}.feed_forward.${name}`, d_ff, d);
    map(`${path}.feed_forward.down`, d, d_ff);
    if (config.norm !== "none") norm(`${path}.feed_forward_norm`);
  }
  if (config.final_norm ?? config.norm === "pre") norm("stack.norm");
  if (!config.tied) map("head", size, d, false);
  return all;
}

// The initial parameters by name, each with an array for its gradient. `size` is the number of tokens.
export function firstParameters(config, size, seed) {
  const { uniform, normal } = generator(seed);
  return new Map(declared(config, size).map(([name, shape, first]) => {
    const data = zeros(...shape).data;
    for (let n = 0; n < data.length; n++) {
      data[n] = first.flat ? first.flat * (2 * uniform() - 1) : first.normal ? first.normal * normal() : first.all;
    }
    return [name, { data, shape, grad: new Float32Array(data.length) }];
  }));
}

// The logits of the token after each one, [token vocab], and every step of the stack.
export function nextLogits(p, config, tokens, given) {
  const steps = stack(inside(p, "stack"), config, tokens, given);
  return { ...steps, logits: linear(steps.out, p("head.weight") ?? p("stack.embedding.weight")) };
}

// The mean of -log softmax(logits)_target over the places that have a target.
export function crossEntropy(logits, targets) {
  const [n, size] = logits.shape, loss = zeros(1), p = zeros(n, size).data;
  const count = targets.reduce((sum, target) => sum + (target !== IGNORED), 0);
  for (let i = 0; i < n; i++) {
    if (targets[i] === IGNORED) continue;
    let most = -Infinity, sum = 0;
    for (let at = i * size; at < (i + 1) * size; at++) most = Math.max(most, logits.data[at]);
    for (let at = i * size; at < (i + 1) * size; at++) sum += p[at] = Math.exp(logits.data[at] - most);
    for (let at = i * size; at < (i + 1) * size; at++) p[at] /= sum;
    loss.data[0] += (Math.log(sum) + most - logits.data[i * size + targets[i]]) / count;
  }
  return made(loss, ([g]) => {
    const dlogits = gradient(logits);
    for (let i = 0; i < n; i++) {
      if (targets[i] === IGNORED) continue;
      for (let at = i * size; at < (i + 1) * size; at++) dlogits[at] += (g * p[at]) / count;
      dlogits[i * size + targets[i]] -= g / count;
    }
  });
}
