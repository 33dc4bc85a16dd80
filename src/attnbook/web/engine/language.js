// A language model off the page's own thread: its GGUF file comes in parts, and a text is read in slices of a few
// tokens, so that it stops when the page asks for no more.
import KERNELS from "./kernels.ts" with { type: "binary" };
import { openFile } from "./llama.js";
import { serve } from "./serve.js";

const PATIENCE = 60; // milliseconds of a slice
let file;
serve({
  // The file's first part, which holds its head, and the bytes of the whole file.
  begin({ part, total, room }) {
    file = null; // its memory is given back first
    file = openFile(new Uint8Array(part), total, KERNELS, room);
    const { model: { sizes, bytes }, words: { names }, end } = file;
    return { sizes, bytes, names, end };
  },
  put: ({ at, part }) => file.model.put(at, new Uint8Array(part)),
  encode: (text) => file.words.encode(text),
  read: (given) => file.model.read({ patience: PATIENCE, ...given }),
});
