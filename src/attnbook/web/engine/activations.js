// The activation functions between the two linear maps of a feed-forward network, and their derivatives.

// erf(x) = 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / (3 5) + ..). All terms have the same sign, so none cancel.
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

const share = (x) => 0.5 * (1 + erf(x / Math.SQRT2)); // of a standard normal distribution below x
const bent = (x) => Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

export const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => x * share(x),
  gelu_tanh: (x) => 0.5 * x * (1 + bent(x)),
  silu: (x) => x * sigmoid(x),
  relu2: (x) => Math.max(0, x) ** 2,
};
export const SLOPES = {
  relu: (x) => Number(x > 0),
  gelu: (x) => share(x) + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI),
  gelu_tanh(x) {
    const t = bent(x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * x * x);
  },
  silu: (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))),
  relu2: (x) => 2 * Math.max(0, x),
};
