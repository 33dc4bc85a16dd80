// The engine in a worker, off the main thread.
import KERNELS from "./kernels.ts" with { type: "binary" };
import { speedUp } from "./fast.js";
import { openBert } from "./bert.js";
import { openGpt } from "./gpt.js";
import { read } from "./safetensors.js";
import { serve } from "./serve.js";

let model;
serve({
  load(buffer) {
    const file = read(buffer);
    speedUp(file.parameters, KERNELS);
    model = file.metadata.merges ? openGpt(file) : openBert(file);
    return { tokens: model.tokens, config: model.config, end: model.end };
  },
  answer: (question) => model.answer(question),
});
