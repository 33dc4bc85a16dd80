// A Transformer that translates: the encoder reads, the decoder writes, word by word the likeliest, and all that their
// attentions compute is told. `tokens` has the words of source and target by their ids.
import { linear, row } from "./tensors.js";
import { causal, inside, stack } from "./transformer.js";

export function openTransformer(p, config, tokens) {
  const [reader, writer] = ["encoder", "decoder"].map((part) => inside(p, `${part}.stack`));
  const ids = new Map(tokens.source.map((word, id) => [word, id])), { target } = tokens;
  const matrix = p("decoder.head.weight") ?? writer("embedding.weight");

  // What the decoder computes of the tokens before each word: the last row's scores choose the next. A sentence is
  // short, so that all rows are computed again for each word; what the rows before found stays as it was.
  function write(memory, longest) {
    for (const read = [target.indexOf("<s>")], end = target.indexOf("</s>"); ;) {
      const wrote = stack(writer, config, read, { mask: causal(), memory }), logits = linear(wrote.out, matrix);
      const last = row(logits, read.length - 1), next = last.indexOf(Math.max(...last));
      if (next === end || read.length === longest) return { ...wrote, logits, chosen: [...read.slice(1), next] };
      read.push(next);
    }
  }

  // As a recurrent translator's, each word with its scores; and what each block's attentions computed (`looked`), row
  // i of the decoder's when it chose the word i.
  return function translate(words, longest) {
    const { out, blocks } = stack(reader, config, words.map((word) => ids.get(word)));
    const wrote = write(out, longest);
    const steps = wrote.chosen.map((id, i) => ({ word: target[id], logits: row(wrote.logits, i) }));
    const looked = {
      cross: wrote.blocks.map((block) => block.cross),
      encoder: blocks.map((block) => block.attention), decoder: wrote.blocks.map((block) => block.attention),
    };
    const states = words.map((_, j) => row(out, j));
    return { words, states, steps, looked, written: steps.map(({ word }) => word).filter((word) => word !== "</s>") };
  };
}
