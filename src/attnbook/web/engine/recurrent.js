// A gated recurrent unit, one sentence at a time, with PyTorch's parameters: gates stacked in the order r, z, n.
import { dot } from "./products.js";

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// W x + b, with W [out in] and b [out] or undefined.
export function affine(weight, bias, x) {
  const [count, size] = weight.shape, out = new Float32Array(count);
  if (x.length !== size) throw new Error(`a map of vectors of size ${size} met one of size ${x.length}`);
  for (let o = 0; o < count; o++) out[o] = dot(weight.data, o * size, x, 0, size) + (bias ? bias.data[o] : 0);
  return out;
}

// The next state. `p` finds a parameter by its name with the suffix `end`; the reset gate acts "after" the product with
// the state, as in PyTorch, or "before" it, as in Cho et al. 2014.
export function gruCell(p, end, x, h, reset = "after") {
  const [W, U, b, c] = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map((name) => p(name + end));
  const d = h.length, given = affine(W, b, x), kept = affine(U, c, h), next = new Float32Array(d);
  const gate = (n) => sigmoid(given[n] + kept[n]);
  const cut = reset === "before" ? affine(U, c, h.map((value, n) => gate(n) * value)) : null;
  for (let n = 0; n < d; n++) {
    const proposal = Math.tanh(given[2 * d + n] + (cut ? cut[2 * d + n] : gate(n) * kept[2 * d + n]));
    const z = gate(d + n);
    next[n] = (1 - z) * proposal + z * h[n];
  }
  return next;
}

// All states for a sequence of vectors; `backward` reads it from the end, but leaves each state at its vector's place.
export function gru(p, end, sequence, { backward = false, reset } = {}) {
  const states = Array(sequence.length), places = [...sequence.keys()];
  let h = new Float32Array(p(`weight_hh${end}`).shape[1]);
  for (const t of backward ? places.reverse() : places) states[t] = h = gruCell(p, end, sequence[t], h, reset);
  return states;
}
