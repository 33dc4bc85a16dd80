// The model that a widget runs in the page: its weights, and the worker that computes with them.
import ENGINE from "../engine/worker.js" with { type: "text" };
import { start } from "../engine/client.js";
import { fetchWeights } from "./weights.js";

// Fetches the weights when the reader comes near. `ready` receives an object that answers questions, and what the
// worker reports about the model; `status` tells the reader what is loading and what went wrong. `name` is the file's
// name.
export function summon({ model, root, status, ready, name = model.get("weights") }) {
  let engine, told;

  async function take(_, bytesOf) {
    told = await engine.open(() => {
      const bytes = bytesOf();
      return ["load", bytes, [bytes]];
    });
  }
  async function newest(...question) {
    try {
      const found = await engine.newest(...question);
      if (found) status.textContent = "";
      return found;
    } catch (reason) {
      status.textContent = `The model gave no answer: ${reason.message}. It is asked again when you change something.`;
      throw reason;
    }
  }
  const begin = () => (engine = start(ENGINE)); // while the weights are on their way
  const names = [name];
  const dismiss = fetchWeights({ model, root, status, names, begin, take, ready: () => ready({ newest }, told) });
  return () => {
    dismiss();
    engine?.stop();
  };
}
