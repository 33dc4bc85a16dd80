// The model of a widget that runs in the page: its weights, and the worker that computes with them.
import ENGINE from "./engine/worker.js" with { type: "text" };
import { start } from "./engine/client.js";

const PATIENCE = 4000; // ms until a kernel is missed

// Asks a kernel for the weights, once, when the reader comes near; on a page of the site its runtime answers. `ready`
// is told the worker, and what it says of the model; `status` says what is waited for, and why there is no model.
export function summon({ model, root, status, ready }) {
  let engine, missed, arrived = false;
  const give = (reason) => (status.textContent = `${reason} Until then this is the stored answer.`);

  function wake() {
    if (missed !== undefined) return;
    status.textContent = "The model is on its way …";
    engine = start(ENGINE); // while the weights are on their way
    missed = setTimeout(() => give("No kernel answers. Run the cell to ask the model yourself."), PATIENCE);
    model.on("msg:custom", hear);
    model.send({ weights: model.get("weights") });
  }
  async function hear({ weights, error }, [view] = []) {
    if (weights !== model.get("weights") || arrived) return;
    arrived = true;
    clearTimeout(missed);
    try {
      if (error) throw new Error(error);
      const bytes = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
      const said = await engine.call("load", bytes, [bytes]);
      status.textContent = "";
      await ready(engine, said);
    } catch (reason) {
      give(`The model could not start: ${reason.message}.`);
    }
  }
  const near = (entries) => entries.some((entry) => entry.isIntersecting) && wake();
  const seen = new IntersectionObserver(near, { rootMargin: "300px" });
  seen.observe(root);
  return () => {
    seen.disconnect();
    clearTimeout(missed);
    if (missed !== undefined) model.off("msg:custom", hear);
    engine?.stop();
  };
}
