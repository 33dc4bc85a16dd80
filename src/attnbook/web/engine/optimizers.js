// How the laboratory updates parameters: the learning-rate schedule, gradient clipping, and four optimizers. Each
// optimizer takes parameters by name and returns a function of the learning rate lr that updates them and zeroes their
// gradients. w is one entry of a parameter, g its gradient, W and G a matrix and its gradient.

// The factor of the learning rate at step 0, 1, ..: it rises linearly over `warmup` steps; then it falls to zero along
// half a cosine or a straight line until step `decay_steps` (0: until the last), or stays constant.
export function rate(step, { schedule, warmup, decay_steps, steps }) {
  if (step < warmup) return (step + 1) / (warmup + 1);
  const done = Math.min(1, (step - warmup) / Math.max(1, (decay_steps || steps) - warmup));
  return { cosine: (1 + Math.cos(Math.PI * done)) / 2, linear: 1 - done, constant: 1 }[schedule];
}

// Scales all gradients so that their joint norm is at most `longest`; returns the norm before scaling.
export function clip(parameters, longest) {
  let square = 0;
  for (const { grad } of parameters) for (let n = 0; n < grad.length; n++) square += grad[n] ** 2;
  const length = Math.sqrt(square), factor = longest / (length + 1e-6);
  if (factor < 1) for (const { grad } of parameters) for (let n = 0; n < grad.length; n++) grad[n] *= factor;
  return length;
}

// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  w = (1 - lr decay) w - lr m' / (sqrt(v') + eps),
// with m' = m / (1 - b1^t), v' = v / (1 - b2^t) in step t = 1, 2, .. (Loshchilov and Hutter 2019, AdamW). If the
// decay is `inside`, g + decay w replaces g, and w itself is not decayed: Adam with an L2 penalty.
export function adamW(named, { betas: [b1, b2] = [0.9, 0.999], eps = 1e-8, decay = 0.01, inside = false } = {}) {
  const parameters = [...named.values()], [early, late] = inside ? [decay, 0] : [0, decay];
  const moments = parameters.map(({ data }) => [new Float32Array(data.length), new Float32Array(data.length)]);
  let t = 0;
  return (lr) => {
    t += 1;
    const short = 1 - b1 ** t, long = Math.sqrt(1 - b2 ** t);
    parameters.forEach(({ data, grad }, i) => {
      const [m, v] = moments[i];
      for (let n = 0; n < data.length; n++) {
        const g = grad[n] + early * data[n];
        m[n] = b1 * m[n] + (1 - b1) * g;
        v[n] = b2 * v[n] + (1 - b2) * g * g;
        data[n] = (1 - lr * late) * data[n] - ((lr / short) * m[n]) / (Math.sqrt(v[n]) / long + eps);
      }
      grad.fill(0);
    });
  };
}

// m = momentum m + g,  w = w - lr m: stochastic gradient descent.
export function sgd(named, { momentum = 0.9 } = {}) {
  const parameters = [...named.values()], speeds = parameters.map(({ data }) => new Float32Array(data.length));
  return (lr) => parameters.forEach(({ data, grad }, i) => {
    for (let n = 0; n < data.length; n++) data[n] -= lr * (speeds[i][n] = momentum * speeds[i][n] + grad[n]);
    grad.fill(0);
  });
}

// M = momentum M + (1 - momentum) G,  W = (1 - lr decay) W - lr 0.2 sqrt(max(a, b)) U V^T, for each matrix [a b] of the
// blocks, where U S V^T = (1 - momentum) G + momentum M; AdamW updates all else (Jordan et al. 2024; Liu et al. 2025).
export function muon(named, { momentum = 0.95, decay = 0.01 } = {}) {
  const mine = ([name, { shape }]) => name.includes(".blocks.") && shape.length === 2, all = [...named];
  const matrices = all.filter(mine).map(([, x]) => x);
  const means = matrices.map(({ data }) => new Float32Array(data.length));
  const others = adamW(new Map(all.filter((each) => !mine(each))), { decay });
  return (lr) => {
    matrices.forEach(({ data, grad, shape: [a, b] }, i) => {
      const mean = means[i];
      for (let n = 0; n < grad.length; n++) {
        mean[n] = momentum * mean[n] + (1 - momentum) * grad[n];
        grad[n] = (1 - momentum) * grad[n] + momentum * mean[n];
      }
      const step = evened(grad, a, b), length = lr * 0.2 * Math.sqrt(Math.max(a, b));
      for (let n = 0; n < data.length; n++) data[n] = (1 - lr * decay) * data[n] - length * step[n];
      grad.fill(0);
    });
    others(lr);
  };
}

// Approximates U V^T of a matrix U S V^T [a b] by five Newton-Schulz steps, X = x X + (y A + z A A) X with A = X X^T.
function evened(matrix, a, b) {
  const [x, y, z] = [3.4445, -4.775, 2.0315], wide = a <= b, [n, m] = wide ? [a, b] : [b, a];
  let square = 0;
  for (const number of matrix) square += number ** 2;
  const scale = 1 / Math.max(Math.sqrt(square), 1e-7);
  let X = (wide ? matrix : turned(matrix, a, b)).map((number) => number * scale);
  for (let step = 0; step < 5; step++) {
    const A = product(X, turned(X, n, m), n, m, n), AA = product(A, A, n, n, n);
    const more = product(A.map((number, i) => y * number + z * AA[i]), X, n, n, m);
    X = X.map((number, i) => x * number + more[i]);
  }
  return wide ? X : turned(X, b, a);
}
function turned(matrix, a, b) { // [a b] -> [b a]
  const out = new Float32Array(a * b);
  for (let i = 0; i < a; i++) for (let j = 0; j < b; j++) out[j * a + i] = matrix[i * b + j];
  return out;
}
function product(left, right, a, b, c) { // [a b] [b c]
  const out = new Float32Array(a * c);
  for (let i = 0; i < a; i++) {
    for (let k = 0; k < b; k++) {
      const number = left[i * b + k];
      for (let j = 0; j < c; j++) out[i * c + j] += number * right[k * c + j];
    }
  }
  return out;
}

export const OPTIMIZERS = { adamw: adamW, adam: (named) => adamW(named, { inside: true }), sgd, muon };
