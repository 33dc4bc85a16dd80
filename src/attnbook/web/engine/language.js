// A language model in a worker: its GGUF file arrives in parts, and a text is read in slices of a few tokens, so
// reading stops when the page asks for no more.
import KERNELS from "./kernels.ts" with { type: "binary" };
import { openFile } from "./llama.js";
import { inOrder } from "./sampling.js";
import { serve } from "./serve.js";

const PATIENCE = 60; // milliseconds per slice
let file;

serve({
  // Opens the file from its first part, which holds the header, and its size in bytes. A part is sent back to be
  // refilled.
  begin({ part, total, room }) {
    file = null; // frees its memory first
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
  // Logits are sorted here, since sorting would stall the page.
  read(given) {
    const { logits, ...told } = file.model.read({ patience: PATIENCE, ...given });
    return logits ? { ...told, ...inOrder(logits) } : told;
  },
}, (answer) => [answer.part, answer.order, answer.logp].flatMap((list) => list?.buffer ?? []));
