// What position encodings change: the embeddings (sinusoidal, learned), queries and keys (rotary), or the scores
// (alibi).
import { gradient, made } from "./tape.js";
import { add, take, zeros } from "./tensors.js";

// Sinusoidal vectors: sin a and cos a in each pair of entries, with a = position / 10000^(pair / d), pair = 0, 2, ..
function waves(positions, d) {
  const out = zeros(positions.length, d);
  out.data.forEach((_, n) => {
    const angle = positions[Math.floor(n / d)] / 10000 ** ((n % d - (n % 2)) / d);
    out.data[n] = n % 2 ? Math.cos(angle) : Math.sin(angle);
  });
  return out;
}

export function placed(p, config, x, positions, batch = 1) {
  const n = positions.length / batch;
  if (config.positions === "sinusoidal") {
    return add(x, take(waves(positions.slice(0, n), config.d_model), positions.map((_, i) => i % n)));
  }
  if (config.positions !== "learned") return x;
  return add(x, take(p("positions.embedding.weight"), positions));
}

// Rotates each pair of entries in queries or keys [head token d] by an angle that grows with the position.
export function rotated(config, x, positions) {
  const [heads, n, d] = x.shape, half = config.rotary_pairing === "half", out = zeros(...x.shape);
  const turns = Array.from({ length: (n * d) / 2 }, (_, at) => {
    const pair = at % (d / 2), angle = positions[(at - pair) / (d / 2)] / config.rotary_base ** ((2 * pair) / d);
    return [Math.cos(angle), Math.sin(angle)];
  });
  function addTurned(to, from, way) {
    for (let l = 0; l < heads; l++) {
      for (let at = 0; at < turns.length; at++) {
        const [cos, sin] = turns[at], pair = at % (d / 2), start = (l * n * d) + 2 * (at - pair);
        const a = start + (half ? pair : 2 * pair), b = a + (half ? d / 2 : 1);
        to[a] += from[a] * cos - way * from[b] * sin;
        to[b] += way * from[a] * sin + from[b] * cos;
      }
    }
  }
  addTurned(out.data, x.data, 1);
  return made(out, (g) => addTurned(gradient(x), g, -1)); // rotated back
}

// The farther away a key, the lower its score, by slope_l |i - j|.
export function slopes(heads) {
  const below = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, l) =>
    2 ** -(l < below ? (8 * (l + 1)) / below : (4 * (2 * (l - below) + 1)) / below));
}
export function distances(heads, from, to) {
  const all = slopes(heads);
  return (l, i, j) => -all[l % heads] * Math.abs(from[i] - to[j]);
}
