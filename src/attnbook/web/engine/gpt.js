// A GPT from its file: how it reads a text, and what it would write next.
import { bytePair } from "./bytepair.js";
import { linear, zeros } from "./tensors.js";
import { causal, inside, kept, stack } from "./transformer.js";

// How many tokens two rows begin with together.
function shared(row, other) {
  const end = row.findIndex((id, n) => id !== other[n]);
  return end < 0 ? row.length : end;
}

// Where the window of the first n tokens begins, of which at most `most` are read at once: when they are full, the
// first half goes, and the others are read anew.
export function windowStart(n, most) {
  const half = Math.max(1, Math.floor(most / 2));
  return half * Math.max(0, Math.ceil((n - most) / half));
}

// The length of each vector [token d].
function lengths({ data, shape: [n, d] }) {
  return Array.from({ length: n }, (_, i) => Math.hypot(...data.subarray(i * d, (i + 1) * d)));
}

// The file's metadata say what it is, each as JSON: `config`, `merges`, and `special`, the first of which ends a text.
export function openGpt({ metadata, parameters }) {
  const p = (name) => parameters.get(name);
  const [config, merges, special] = ["config", "merges", "special"].map((name) => JSON.parse(metadata[name]));
  const words = bytePair(merges, special), end = words.tokens.indexOf(special[0]);
  const matrix = p("head.weight") ?? p("stack.embedding.weight");
  let row = [], past; // the last window that was read, and what each layer has kept of it

  // Reads a text and the tokens behind it; if both are empty, the token that ends a text. What the window has in common
  // with the last one is not read again. If the reader has a row that is `known`, the first `same` places are; new ones
  // are answered as far as one window reaches, and `rest` tokens are left for the next question. From the place `from`
  // on the answer has the scores of the next token [place token], all weights [layer head place key], the first key of
  // which is the token `start`, and the lengths [layer place 3] of the state that a layer gets, of what its attention
  // adds, and of what its network adds. The first `prompt` tokens stand in the text.
  function answer({ text, written, known = [] }) {
    const prompt = text || written.length ? words.encode(text) : [end], whole = [...prompt, ...written];
    const same = Math.min(shared(known, whole), whole.length - 1), start = windowStart(same + 1, config.max_len);
    const ids = whole.slice(0, start + config.max_len), read = ids.slice(start);
    const from = Math.min(same - start, shared(row, read)), more = read.slice(from);
    const before = from ? past.map((each) => kept(each, from)) : undefined;
    const { states, blocks, out } = stack(inside(p, "stack"), config, more, { mask: causal(from), past: before });
    row = read;
    past = blocks.map(({ attention }) => kept(attention));
    const { n_layers: layers, n_heads: heads } = config, weights = zeros(layers, heads, more.length, read.length);
    const size = zeros(layers, more.length, 3);
    blocks.forEach(({ attention, network }, layer) => {
      weights.data.set(attention.weights.data, layer * attention.weights.data.length);
      const parts = [states[layer], attention.out, ...(network ? [network.out] : [])].map(lengths);
      parts.forEach((part, n) => part.forEach((length, i) => (size.data[(layer * more.length + i) * 3 + n] = length)));
    });
    return { ids, pieces: words.written(ids), prompt: Math.min(prompt.length, ids.length), start, same,
      from: start + from, rest: whole.length - ids.length, logits: linear(out, matrix), weights, lengths: size };
  }
  return { config, tokens: words.names, end, answer };
}
