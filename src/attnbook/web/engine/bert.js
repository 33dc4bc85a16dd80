// A pretrained BERT loaded from its file: how it reads a sentence, and what it predicts for hidden words.
import { linear, take, zeros } from "./tensors.js";
import { activated, inside, mapped, norm, stack } from "./transformer.js";
import { MASK, pieces, wordsAndMasks } from "./wordpiece.js";

// The logits of all tokens for each hidden state h, E norm(f(W h + c)) + b, where E is the embedding matrix.
export function wordLogits(p, config, states) {
  const changed = activated(config, mapped(p, "words.transform", states));
  return linear(norm(inside(p, "words.norm"), config, changed), p("stack.embedding.weight"), p("words.bias"));
}

// The file's metadata describe the model, each entry as JSON: `config`, `tokens` in the order of their ids, and
// `lowercase`.
export function openBert({ metadata, parameters }) {
  const p = (name) => parameters.get(name);
  const [config, tokens, lowercase] = ["config", "tokens", "lowercase"].map((name) => JSON.parse(metadata[name]));
  const ids = new Map(tokens.map((token, id) => [token, id]));

  // The words of a text, each with the `places` of its pieces in the row that the model reads: [CLS] pieces [SEP]. From
  // the first word that no longer fits into the row, words have no places.
  function layout(text) {
    const row = [ids.get("[CLS]")];
    let full = false;
    const words = wordsAndMasks(text, lowercase).map((word) => {
      const found = word === MASK ? [ids.get(MASK)] : pieces(word, ids), given = found ?? [ids.get("[UNK]")];
      full ||= row.length + given.length >= config.max_len;
      const places = full ? [] : given.map((_, n) => row.length + n);
      if (!full) row.push(...given);
      return { text: word, known: found !== null, places };
    });
    return { words, row: [...row, ids.get("[SEP]")] };
  }

  // Hides every piece of the words with the indices `masks`; a [MASK] in the text hides a word that only the reader
  // knows. Returns the words; the indices of the hidden ones; the row's tokens; for each hidden piece its place and the
  // logits of all tokens, [place token]; and all weights, [layer head query key].
  function answer({ text, masks }) {
    const { words, row } = layout(text), hidden = words.flatMap((word, n) =>
      masks.includes(n) || word.text === MASK ? [n] : []);
    const places = hidden.flatMap((n) => words[n].places);
    const seen = row.map((id, place) => (places.includes(place) ? ids.get(MASK) : id));
    const { blocks, out } = stack(inside(p, "stack"), config, seen);
    const attention = zeros(config.n_layers, config.n_heads, row.length, row.length);
    blocks.forEach(({ attention: { weights } }, n) => attention.data.set(weights.data, n * weights.data.length));
    return {
      words, hidden, places, attention,
      row: row.map((id) => tokens[id]),
      logits: wordLogits(p, config, take(out, places)),
    };
  }
  return { config, tokens, lowercase, answer };
}
