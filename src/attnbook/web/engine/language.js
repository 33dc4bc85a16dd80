// A language model off the page's own thread: its GGUF file comes in parts, and a text is read in slices of a few
// tokens, so that it stops when the page asks for no more.
import KERNELS from "./kernels.ts" with { type: "binary" };
import { openFile } from "./llama.js";
import { inOrder } from "./sampling.js";
import { serve } from "./serve.js";

const PATIENCE = 60; // milliseconds of a slice
let file;

serve({
  // The file's first part, which holds its head, and the bytes of the whole file. A part goes back, to be filled anew.
  begin({ part, total, room }) {
    file = null; // its memory is given back first
    try {
      file = openFile(part, total, KERNELS, room);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new Error(`there is too little memory: it takes ${Math.round(total / 1e6)} MB and more`);
    }
    const { model: { sizes }, words: { names }, start } = file;
    return { part, sizes, names, start };
  },
  put({ at, part }) {
    file.model.put(at, part);
    return { part };
  },
  encode: ({ text, special }) => file.words.encode(text, { special }),
  // Scores are put in order here, since sorting would stall the page.
  read(given) {
    const { logits, ...told } = file.model.read({ patience: PATIENCE, ...given });
    return logits ? { ...told, ...inOrder(logits) } : told;
  },
}, (answer) => [answer.part, answer.order, answer.logp].flatMap((list) => list?.buffer ?? []));
