// The trained models of a Translator: small enough to run in the page itself, in a few milliseconds per sentence.
import { read } from "../engine/safetensors.js";
import { openTranslator } from "../engine/translator.js";
import { fetchWeights } from "../shared/weights.js";

// Fetches the weights of each model when the reader comes near; `ready` receives the models once all have loaded.
export function fetchModels({ model, root, status, ready }) {
  const names = model.get("weights"), opened = new Map();
  const take = (name, bytesOf) => void opened.set(name, openTranslator(read(bytesOf())));
  return fetchWeights({
    model, root, status, names, take, silent: 600, ready: () => ready(names.map((each) => opened.get(each))),
  });
}
