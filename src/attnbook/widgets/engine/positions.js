// What positions change: the embeddings (sinusoidal, learned), queries and keys (rotary), or the scores (alibi).
import { add, map, take, zeros } from "./tensors.js";

// The vectors of positions: (sin a, cos a) of each pair of numbers, a = position / 10000^(pair / d), pair = 0, 2, ..
function waves(positions, d) {
  const out = zeros(positions.length, d);
  out.data.forEach((_, n) => {
    const angle = positions[Math.floor(n / d)] / 10000 ** ((n % d - (n % 2)) / d);
    out.data[n] = n % 2 ? Math.cos(angle) : Math.sin(angle);
  });
  return out;
}

export function placed(p, config, x, positions) {
  if (config.positions === "sinusoidal") return add(x, waves(positions, config.d_model));
  if (config.positions !== "learned") return x;
  return add(x, take(p("positions.embedding.weight"), positions));
}

// Queries or keys [head token d], each pair of numbers turned by an angle that grows with the position.
export function rotated(config, x, positions) {
  const [, n, d] = x.shape, half = config.rotary_pairing === "half";
  return map(x, (value, at) => {
    const c = at % d, pair = half ? c % (d / 2) : c >> 1, second = half ? c >= d / 2 : c % 2 === 1;
    const angle = positions[Math.floor(at / d) % n] / config.rotary_base ** ((2 * pair) / d);
    const other = x.data[at + (half ? d / 2 : 1) * (second ? -1 : 1)];
    return value * Math.cos(angle) + (second ? 1 : -1) * other * Math.sin(angle);
  });
}

// The farther a key, the lower its score: - slope_l |i - j|.
export function slopes(heads) {
  const below = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, l) =>
    2 ** -(l < below ? (8 * (l + 1)) / below : (4 * (2 * (l - below) + 1)) / below));
}
export function distances(heads, from, to) {
  const all = slopes(heads);
  return (l, i, j) => -all[l] * Math.abs(from[i] - to[j]);
}
