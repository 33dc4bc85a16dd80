// What a model of the laboratory is, and what a step of its training costs, before anything is trained.
import { declared } from "./training.js";

const STANDARD = {
  normalizer: "layer", norm_eps: 1e-5, final_norm: null, gated: false, rotary_base: 10000, rotary_pairing: "half",
  d_head: null, n_kv_heads: null, qk_norm: false, bias: true, embedding_scale: true, embedding_norm: false, tied: true,
  n_segments: 0,
};
const PASSES = 3; // forward once, and twice as much on the way back

// The settings as a TransformerConfig has them.
export const configured = (settings, task) => ({
  ...STANDARD, ...settings, residual: Boolean(settings.residual), max_len: task.length,
  d_ff: settings.network ? 4 * settings.d_model : 0,
});

// How many numbers are trained (`size`), and of them in the blocks (`body`); the `length` of the longest row; and the
// `operations` of one step: for each token that is read two for each number of a matrix, the output's among them, and
// four for each number of a layer's vector and each token that is looked at; all that three times.
export function sizes(settings, task) {
  const config = configured(settings, task), all = declared(config, task.tokens.length);
  const count = (some) => some.reduce((sum, [, shape]) => sum + shape.reduce((n, size) => n * size, 1), 0);
  const body = all.filter(([name]) => name.includes(".blocks.")), n = task.length - 1;
  const matrices = count(body.filter(([, shape]) => shape.length === 2)) + task.tokens.length * config.d_model;
  const token = 2 * matrices + 4 * config.n_layers * n * config.d_model;
  return { size: count(all), body: count(body), length: task.length, operations: PASSES * settings.batch * n * token };
}
