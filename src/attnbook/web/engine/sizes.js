// What a model of the laboratory consists of, and what a training step costs, before anything is trained.
import { declared } from "./training.js";

const STANDARD = {
  normalizer: "layer", norm_eps: 1e-5, final_norm: null, gated: false, rotary_base: 10000, rotary_pairing: "half",
  d_head: null, n_kv_heads: null, qk_norm: false, bias: true, embedding_scale: true, embedding_norm: false, tied: true,
  n_segments: 0,
};
const PASSES = 3; // one forward pass, and a backward pass at twice its cost

// The settings as a TransformerConfig.
export const configured = (settings, task) => ({
  ...STANDARD, ...settings, residual: Boolean(settings.residual), max_len: task.length,
  d_ff: settings.network ? 4 * settings.d_model : 0,
});

// The number of trained parameters (`size`), and of those in the blocks (`body`); the `length` of the longest row; and
// the `operations` of one step: for each token read, two per entry of a matrix, including the output's, and four per
// layer for each entry of its vector and each token attended to; all that three times.
export function sizes(settings, task) {
  const config = configured(settings, task), all = declared(config, task.tokens.length);
  const count = (some) => some.reduce((sum, [, shape]) => sum + shape.reduce((n, size) => n * size, 1), 0);
  const body = all.filter(([name]) => name.includes(".blocks.")), n = task.length - 1;
  const matrices = count(body.filter(([, shape]) => shape.length === 2)) + task.tokens.length * config.d_model;
  const token = 2 * matrices + 4 * config.n_layers * n * config.d_model;
  return { size: count(all), body: count(body), length: task.length, operations: PASSES * settings.batch * n * token };
}
