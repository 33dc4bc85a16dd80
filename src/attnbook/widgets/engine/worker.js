// The engine off the page's own thread: calls come as messages and are answered under their number.
import { open } from "./bert.js";

let model;
const calls = {
  load(buffer) {
    model = open(buffer);
    return { tokens: model.tokens, config: model.config };
  },
  answer: (question) => model.answer(question),
};

globalThis.onmessage = ({ data: { number, name, given } }) => {
  try {
    globalThis.postMessage({ number, result: calls[name](given) });
  } catch (error) {
    globalThis.postMessage({ number, error: String(error.message ?? error) });
  }
};
