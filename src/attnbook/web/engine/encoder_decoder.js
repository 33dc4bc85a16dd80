// A Transformer that translates: the encoder reads, the decoder writes the likeliest word at each step, and everything
// that their attention layers compute is returned. `tokens` lists the source and target words by id.
import { linear, row } from "./tensors.js";
import { causal, inside, stack } from "./transformer.js";

export function openTransformer(p, config, tokens) {
  const [reader, writer] = ["encoder", "decoder"].map((part) => inside(p, `${part}.stack`));
  const ids = new Map(tokens.source.map((word, id) => [word, id])), { target } = tokens;
  const matrix = p("decoder.head.weight") ?? writer("embedding.weight");

  // What the decoder computes from the tokens before each word: the last row's logits choose the next word. Sentences
  // are short, so all rows are recomputed for each word; the results for earlier rows stay the same.
  function write(memory, longest) {
    for (const read = [target.indexOf("<s>")], end = target.indexOf("</s>"); ;) {
      const wrote = stack(writer, config, read, { mask: causal(), memory }), logits = linear(wrote.out, matrix);
      const last = row(logits, read.length - 1), next = last.indexOf(Math.max(...last));
      if (next === end || read.length === longest) return { ...wrote, logits, chosen: [...read.slice(1), next] };
      read.push(next);
    }
  }

  // Returns what a recurrent translator does, each word with its logits, and in `looked` what each block's attention
  // layers computed; row i of the decoder's belongs to the choice of word i.
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
