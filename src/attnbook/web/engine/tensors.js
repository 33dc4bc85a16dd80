// The tensor operations of a Transformer. Functions return new tensors and leave their arguments unchanged; sums run in
// double precision, except in the products of fast.js. A sentence is a matrix [token d], a batch of sentences of one
// length is all their rows. Each function also defines its backward step (`made`, of tape.js): g is the gradient of its
// result.
import { addProduct, dot, turned } from "./products.js";
import { gradient, made, room } from "./tape.js";

const FEW = 3; // rows of x for which transposing the matrix does not pay

export const zeros = (...shape) => ({ data: room(shape.reduce((size, n) => size * n, 1)), shape });
export const row = ({ data, shape: [, d] }, i) => data.subarray(i * d, (i + 1) * d);

// Applies f to each entry and its index; `slope` is its derivative.
export function map(x, f, slope) {
  const out = zeros(...x.shape), size = x.data.length;
  for (let n = 0; n < size; n++) out.data[n] = f(x.data[n], n);
  return made(out, (g) => {
    const dx = gradient(x);
    for (let n = 0; n < size; n++) dx[n] += g[n] * slope(x.data[n], n);
  });
}
export const scaled = (x, by) => map(x, (value) => value * by, () => by);
function addTo(sum, more) {
  for (let n = 0; n < sum.length; n++) sum[n] += more[n];
}
export function add(x, y) {
  const out = zeros(...x.shape);
  for (let n = 0; n < x.data.length; n++) out.data[n] = x.data[n] + y.data[n];
  return made(out, (g) => {
    addTo(gradient(x), g);
    addTo(gradient(y), g);
  });
}
export function times(x, y) {
  const out = zeros(...x.shape);
  for (let n = 0; n < x.data.length; n++) out.data[n] = x.data[n] * y.data[n];
  return made(out, (g) => {
    const dx = gradient(x), dy = gradient(y);
    for (let n = 0; n < g.length; n++) {
      dx[n] += g[n] * y.data[n];
      dy[n] += g[n] * x.data[n];
    }
  });
}

// The rows of a table at `places`, as in an embedding.
export function take(table, places) {
  const d = table.shape[1], out = zeros(places.length, d);
  places.forEach((place, i) => {
    if (!(place >= 0 && place < table.shape[0])) throw new Error(`${place} is no row of ${table.shape[0]}`);
    row(out, i).set(row(table, place));
  });
  return made(out, (g) => {
    const all = gradient(table);
    places.forEach((place, i) => {
      for (let c = 0; c < d; c++) all[place * d + c] += g[i * d + c];
    });
  });
}

// x W^T + b, with x [token in], W [out in] as PyTorch stores it, b [out] or undefined.
export function linear(x, weight, bias) {
  const [n, size] = x.shape, [count, wanted] = weight.shape, out = zeros(n, count);
  if (size !== wanted) throw new Error(`a map of vectors of size ${wanted} met vectors of size ${size}`);
  for (let i = 0; bias && i < n; i++) row(out, i).set(bias.data);
  if (weight.times) {
    for (let i = 0; i < n; i++) addTo(row(out, i), weight.times(row(x, i)));
  } else if (n <= FEW) {
    for (let i = 0; i < n; i++) {
      for (let o = 0; o < count; o++) {
        out.data[i * count + o] += dot(x.data, i * size, weight.data, o * size, size);
      }
    }
  } else {
    addProduct([out.data, 0], [x.data, 0, size, 1], [turned(weight.data, 0, count, size), 0], n, size, count);
  }
  return made(out, (g) => {
    addProduct([gradient(x), 0], [g, 0, count, 1], [weight.data, 0], n, count, size);
    addProduct([gradient(weight), 0], [g, 0, 1, count], [x.data, 0], count, n, size);
    if (!bias) return;
    for (let i = 0, db = gradient(bias); i < n; i++) for (let o = 0; o < count; o++) db[o] += g[i * count + o];
  });
}

// Each row, shifted to zero mean if `centred`, scaled to unit mean square, times a gain, plus a bias if there is one.
function normed(x, gain, bias, eps, centred) {
  const d = x.shape.at(-1), out = zeros(...x.shape), unit = room(x.data.length), scales = room(x.data.length / d);
  for (let i = 0; i < x.data.length; i += d) {
    let mean = 0, square = 0;
    for (let n = 0; centred && n < d; n++) mean += x.data[i + n] / d;
    for (let n = 0; n < d; n++) square += (x.data[i + n] - mean) ** 2 / d;
    const scale = (scales[i / d] = 1 / Math.sqrt(square + eps));
    for (let n = 0; n < d; n++) {
      unit[i + n] = (x.data[i + n] - mean) * scale;
      out.data[i + n] = gain.data[n] * unit[i + n] + (bias ? bias.data[n] : 0);
    }
  }
  return made(out, (g) => {
    const dx = gradient(x), dgain = gradient(gain), dbias = bias && gradient(bias);
    for (let i = 0; i < x.data.length; i += d) {
      let mean = 0, along = 0; // parts of `unit`'s gradient that only shift or scale the row: no effect
      for (let n = 0; n < d; n++) {
        const du = g[i + n] * gain.data[n];
        if (centred) mean += du / d;
        along += (du * unit[i + n]) / d;
        dgain[n] += g[i + n] * unit[i + n];
        if (dbias) dbias[n] += g[i + n];
      }
      for (let n = 0; n < d; n++) dx[i + n] += scales[i / d] * (g[i + n] * gain.data[n] - mean - unit[i + n] * along);
    }
  });
}
// Layer norm centres each row first; RMS norm only divides it by its root mean square.
export const layerNorm = (x, gain, bias, eps) => normed(x, gain, bias, eps, true);
export const rmsNorm = (x, gain, eps) => normed(x, gain, null, eps, false);

// [batch*token head*d] to [batch*head token d], and back. `inward` adds `rows` to `heads`, otherwise the reverse.
function addHeads(rows, heads, [all, n, d], batch, inward) {
  const count = all / batch;
  for (let m = 0, at = 0; m < all; m++) {
    const b = Math.floor(m / count), l = m % count;
    for (let i = 0; i < n; i++) {
      for (let c = 0, from = ((b * n + i) * count + l) * d; c < d; c++, from++, at++) {
        if (inward) heads[at] += rows[from];
        else rows[from] += heads[at];
      }
    }
  }
}
export function split(x, heads, batch = 1) {
  const [n, all] = x.shape, out = zeros(heads * batch, n / batch, all / heads);
  addHeads(x.data, out.data, out.shape, batch, true);
  return made(out, (g) => addHeads(gradient(x), g, out.shape, batch, false));
}
export function join(x, batch = 1) {
  const [all, n, d] = x.shape, out = zeros(n * batch, (all / batch) * d);
  addHeads(out.data, x.data, x.shape, batch, false);
  return made(out, (g) => addHeads(g, gradient(x), x.shape, batch, true));
}

// score_lij = q_li . k_gj / sqrt(d) + bias(l, i, j). Each key head g serves the same number of query heads.
export function scaledDots(q, k, bias) {
  const [heads, n, d] = q.shape, [groups, m] = k.shape, out = zeros(heads, n, m), root = Math.sqrt(d);
  const group = (l) => Math.floor((l * groups) / heads) * m * d;
  for (let l = 0, at = 0; l < heads; l++) {
    const keys = turned(k.data, group(l), m, d);
    addProduct([out.data, at], [q.data, l * n * d, d, 1], [keys, 0], n, d, m);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < m; j++, at++) out.data[at] = out.data[at] / root + (bias ? bias(l, i, j) : 0);
    }
  }
  return made(out, (g) => {
    const dq = gradient(q), dk = gradient(k), ds = room(n * m);
    for (let l = 0; l < heads; l++) {
      for (let c = 0; c < n * m; c++) ds[c] = g[l * n * m + c] / root;
      addProduct([dq, l * n * d], [ds, 0, m, 1], [k.data, group(l)], n, m, d);
      addProduct([dk, group(l)], [ds, 0, 1, m], [q.data, l * n * d], m, n, d);
    }
  });
}

// Softmax over the keys that a query may attend to, mask(i, j), by default all; zeros if there are none.
export function maskedSoftmax(scores, mask) {
  const [heads, n, m] = scores.shape, out = zeros(heads, n, m);
  mask ??= () => true;
  for (let l = 0; l < heads; l++) {
    for (let i = 0; i < n; i++) {
      const start = (l * n + i) * m;
      let most = -Infinity, sum = 0;
      for (let j = 0; j < m; j++) if (mask(i, j)) most = Math.max(most, scores.data[start + j]);
      for (let j = 0; j < m; j++) if (mask(i, j)) sum += out.data[start + j] = Math.exp(scores.data[start + j] - most);
      for (let j = 0; j < m; j++) if (mask(i, j)) out.data[start + j] /= sum;
    }
  }
  return made(out, (g) => {
    const ds = gradient(scores);
    for (let start = 0; start < g.length; start += m) {
      const mean = dot(out.data, start, g, start, m);
      for (let j = start; j < start + m; j++) ds[j] += out.data[j] * (g[j] - mean);
    }
  });
}

// Sums of values by weight: [head query key] and [group key d] to [head query d]. A value with weight 0 adds nothing,
// not even NaN.
export function combine(weights, v) {
  const [heads, n, m] = weights.shape, [groups, , d] = v.shape, out = zeros(heads, n, d);
  const group = (l) => Math.floor((l * groups) / heads) * m * d, finite = v.data.every(Number.isFinite);
  for (let l = 0; l < heads; l++) {
    if (finite) {
      addProduct([out.data, l * n * d], [weights.data, l * n * m, m, 1], [v.data, group(l)], n, m, d);
      continue;
    }
    for (let at = l * n * m; at < (l + 1) * n * m; at++) {
      const weight = weights.data[at], value = group(l) + (at % m) * d, sum = Math.floor(at / m) * d;
      for (let c = 0; weight !== 0 && c < d; c++) out.data[sum + c] += weight * v.data[value + c];
    }
  }
  return made(out, (g) => {
    const dw = gradient(weights), dv = gradient(v);
    for (let l = 0; l < heads; l++) {
      const values = turned(v.data, group(l), m, d);
      addProduct([dw, l * n * m], [g, l * n * d, d, 1], [values, 0], n, d, m);
      addProduct([dv, group(l)], [weights.data, l * n * m, 1, m], [g, l * n * d], m, n, d);
    }
  });
}
