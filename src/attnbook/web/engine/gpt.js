// A GPT loaded from its file: how it reads a text, and what it predicts next.
import { bytePair } from "./bytepair.js";
import { linear, zeros } from "./tensors.js";
import { causal, inside, kept, stack } from "./transformer.js";

// The number of leading tokens that two rows share.
function shared(row, other) {
  const end = row.findIndex((id, n) => id !== other[n]);
  return end < 0 ? row.length : end;
}

// Where the window for the first n tokens begins, of which at most `most` are read at once: when the window is full,
// its first half is dropped and the rest is read again.
export function windowStart(n, most) {
  const half = Math.max(1, Math.floor(most / 2));
  return half * Math.max(0, Math.ceil((n - most) / half));
}

// The Euclidean norm of each vector in [token d].
function lengths({ data, shape: [n, d] }) {
  return Array.from({ length: n }, (_, i) => Math.hypot(...data.subarray(i * d, (i + 1) * d)));
}

// The file's metadata describe the model, each entry as JSON: `config`, `merges`, and `special`, the first of which
// ends a text.
export function openGpt({ metadata, parameters }) {
  const p = (name) => parameters.get(name);
  const [config, merges, special] = ["config", "merges", "special"].map((name) => JSON.parse(metadata[name]));
  const words = bytePair(merges, special), end = words.tokens.indexOf(special[0]);
  const matrix = p("head.weight") ?? p("stack.embedding.weight");
  let row = [], past; // the window read last, and what each attention layer kept of it

  // Reads a text and the tokens `written` after it, or the token that ends a text if both are empty. The prefix that
  // the window shares with the last one is not read again. The first `same` tokens agree with the row `known` to the
  // page; from there on, the answer covers the tokens that fit into one window and leaves `rest` for the next question.
  // From place `from` on, it has the logits of the next token [place token], all weights [layer head place key], whose
  // first key is the token `start`, and the lengths [layer place 3] of a block's input, of what its attention adds, and
  // of what its feed-forward network adds. The first `prompt` tokens are those of the text.
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
