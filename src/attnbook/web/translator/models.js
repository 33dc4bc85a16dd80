// The trained models of a Translator: small enough to run in the page itself, a few milliseconds a sentence.
import { read } from "../engine/safetensors.js";
import { openTranslator } from "../engine/translator.js";
import { button } from "../shared/ui.js";

const PATIENCE = 4000, SLOW = 600; // ms until a kernel is missed; until it is said that weights are awaited

const opened = (view) =>
  openTranslator(read(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength)));

// Asks a kernel for the weights of each model, once, when the reader comes near; on a page of the site its runtime
// answers. `ready` gets the models. Weights that did not arrive are asked for again when the reader comes near again,
// is online again, or presses.
export function fetchModels({ model, root, status, ready }) {
  const names = model.get("weights"), arrived = new Map();
  let asking = false, missed, slow;
  const give = (reason, ...more) => {
    clearTimeout(slow);
    status.replaceChildren(`${reason} Until then this is the stored answer. `, ...more);
  };

  function wake() {
    if (asking || arrived.size === names.length) return;
    asking = true;
    slow = setTimeout(() => (status.textContent = "The models are on their way …"), SLOW);
    missed = setTimeout(() => give("No kernel answers. Run the cell to ask the models yourself."), PATIENCE);
    for (const name of names.filter((each) => !arrived.has(each))) model.send({ weights: name });
  }
  function hear({ weights, error }, [view] = []) {
    if (!names.includes(weights) || arrived.has(weights)) return;
    try {
      if (error) throw new Error(error);
      arrived.set(weights, opened(view));
    } catch ({ message }) {
      asking = false;
      clearTimeout(missed);
      return give(`A model could not start: ${message}.`, button("Try again", wake));
    }
    if (arrived.size < names.length) return;
    for (const timer of [missed, slow]) clearTimeout(timer);
    status.textContent = "";
    ready(names.map((name) => arrived.get(name)));
  }
  const near = (entries) => entries.some((entry) => entry.isIntersecting) && wake();
  const seen = new IntersectionObserver(near, { rootMargin: "300px" });
  model.on("msg:custom", hear);
  seen.observe(root);
  addEventListener("online", wake);
  return () => {
    seen.disconnect();
    removeEventListener("online", wake);
    for (const timer of [missed, slow]) clearTimeout(timer);
    model.off("msg:custom", hear);
  };
}

// An answer of the engine, with the weights of each head as a map [head word written word read].
export function withMaps(told) {
  const heads = told.steps[0].heads ?? [];
  return { ...told, maps: heads.map((_, l) => told.steps.map((step) => step.heads[l].weights)) };
}
