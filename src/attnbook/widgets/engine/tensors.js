// What a Transformer computes with. A tensor is { data, shape }: a Float32Array, row by row, and its sizes. Functions
// give new tensors and leave theirs as they are; sums run in double precision. A sentence is a matrix [token d].

export function zeros(...shape) {
  return { data: new Float32Array(shape.reduce((size, n) => size * n, 1)), shape };
}
export const map = ({ data, shape }, f) => ({ data: data.map(f), shape });
export const add = (x, y) => map(x, (value, n) => value + y.data[n]);
export const times = (x, y) => map(x, (value, n) => value * y.data[n]);
export const row = ({ data, shape: [, d] }, i) => data.subarray(i * d, (i + 1) * d);

// Rows of a table, as an embedding gives them.
export function take(table, places) {
  const out = zeros(places.length, table.shape[1]);
  places.forEach((place, i) => {
    if (!(place >= 0 && place < table.shape[0])) throw new Error(`${place} is no row of ${table.shape[0]}`);
    row(out, i).set(row(table, place));
  });
  return out;
}

// sum_n x[i + n] y[j + n]. Four sums, as a processor adds them side by side.
function dot(x, i, y, j, size) {
  let a = 0, b = 0, c = 0, d = 0, n = 0;
  for (; n + 3 < size; n += 4) {
    a += x[i + n] * y[j + n];
    b += x[i + n + 1] * y[j + n + 1];
    c += x[i + n + 2] * y[j + n + 2];
    d += x[i + n + 3] * y[j + n + 3];
  }
  for (; n < size; n++) a += x[i + n] * y[j + n];
  return a + b + (c + d);
}

// x W^T + b, with x [token in], W [out in] as PyTorch keeps it, b [out] or none.
export function linear(x, weight, bias) {
  const [n, size] = x.shape, [count, wanted] = weight.shape, out = zeros(n, count);
  if (size !== wanted) throw new Error(`a map of vectors of size ${wanted} met vectors of size ${size}`);
  for (let i = 0; i < n; i++) {
    for (let o = 0; o < count; o++) {
      out.data[i * count + o] = dot(x.data, i * size, weight.data, o * size, size) + (bias ? bias.data[o] : 0);
    }
  }
  return out;
}

// Each row moved to zero mean and scaled to unit variance, times a gain, plus a bias.
export function layerNorm(x, gain, bias, eps) {
  const d = x.shape.at(-1), out = zeros(...x.shape);
  for (let i = 0; i < x.data.length; i += d) {
    let mean = 0, variance = 0;
    for (let n = 0; n < d; n++) mean += x.data[i + n] / d;
    for (let n = 0; n < d; n++) variance += (x.data[i + n] - mean) ** 2 / d;
    const scale = 1 / Math.sqrt(variance + eps);
    for (let n = 0; n < d; n++) out.data[i + n] = gain.data[n] * (x.data[i + n] - mean) * scale + bias.data[n];
  }
  return out;
}

// Each row divided by its root mean square, times a gain.
export function rmsNorm(x, gain, eps) {
  const d = x.shape.at(-1), out = zeros(...x.shape);
  for (let i = 0; i < x.data.length; i += d) {
    const scale = 1 / Math.sqrt(dot(x.data, i, x.data, i, d) / d + eps);
    for (let n = 0; n < d; n++) out.data[i + n] = gain.data[n] * x.data[i + n] * scale;
  }
  return out;
}

// [token head*d] to [head token d], and back.
export function split(x, heads) {
  const [n, all] = x.shape, d = all / heads, out = zeros(heads, n, d);
  for (let l = 0; l < heads; l++) {
    for (let i = 0; i < n; i++) out.data.set(row(x, i).subarray(l * d, (l + 1) * d), (l * n + i) * d);
  }
  return out;
}
export function join(x) {
  const [heads, n, d] = x.shape, out = zeros(n, heads * d);
  for (let l = 0; l < heads; l++) {
    for (let i = 0, from = l * n * d; i < n; i++, from += d) row(out, i).set(x.data.subarray(from, from + d), l * d);
  }
  return out;
}

// score_lij = q_li . k_gj / sqrt(d) + bias(l, i, j). Each head of keys, g, serves as many heads of queries.
export function scaledDots(q, k, bias) {
  bias ??= () => 0;
  const [heads, n, d] = q.shape, [groups, m] = k.shape, out = zeros(heads, n, m), root = Math.sqrt(d);
  for (let l = 0, at = 0; l < heads; l++) {
    const first = Math.floor((l * groups) / heads) * m;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < m; j++) {
        out.data[at++] = dot(q.data, (l * n + i) * d, k.data, (first + j) * d, d) / root + bias(l, i, j);
      }
    }
  }
  return out;
}

// Softmax over the keys that a query may attend to, mask(i, j), by default all; zeros where there is none.
export function maskedSoftmax(scores, mask) {
  const [heads, n, m] = scores.shape, out = zeros(heads, n, m);
  mask ??= () => true;
  for (let l = 0; l < heads; l++) {
    for (let i = 0; i < n; i++) {
      const start = (l * n + i) * m;
      let most = -Infinity, sum = 0;
      for (let j = 0; j < m; j++) if (mask(i, j)) most = Math.max(most, scores.data[start + j]);
      for (let j = 0; j < m; j++) if (mask(i, j)) sum += Math.exp(scores.data[start + j] - most);
      for (let j = 0; j < m; j++) if (mask(i, j)) out.data[start + j] = Math.exp(scores.data[start + j] - most) / sum;
    }
  }
  return out;
}

// Sums of values by their weights: [head query key] and [group key d] to [head query d]. What has weight 0 is not seen.
export function combine(weights, v) {
  const [heads, n, m] = weights.shape, [groups, , d] = v.shape, out = zeros(heads, n, d), sums = new Float64Array(d);
  for (let l = 0; l < heads; l++) {
    const first = Math.floor((l * groups) / heads) * m;
    for (let i = 0; i < n; i++) {
      sums.fill(0);
      for (let j = 0; j < m; j++) {
        const weight = weights.data[(l * n + i) * m + j];
        for (let c = 0; weight !== 0 && c < d; c++) sums[c] += weight * v.data[(first + j) * d + c];
      }
      out.data.set(sums, (l * n + i) * d);
    }
  }
  return out;
}

// erf(x) = 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / (3 5) + ..). All terms have one sign, so that none cancels.
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

export const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
  relu2: (x) => Math.max(0, x) ** 2,
};
