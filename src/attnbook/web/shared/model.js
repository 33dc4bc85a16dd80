// The model of a widget that runs in the page: its weights, and the worker that computes with them.
import ENGINE from "../engine/worker.js" with { type: "text" };
import { start } from "../engine/client.js";
import { button } from "./ui.js";

const PATIENCE = 4000; // ms until a kernel is missed

// Asks a kernel for the weights, once, when the reader comes near; on a page of the site its runtime answers. `ready`
// gets an object that answers questions, and what the worker reports of the model; `status` shows the reader what is
// awaited and what went wrong.
// Weights that did not arrive are asked for again when the reader comes near again, is online again, or presses.
export function summon({ model, root, status, ready }) {
  let engine, missed, asking = false, arrived = false;
  const give = (reason, ...more) => status.replaceChildren(`${reason} Until then this is the stored answer. `, ...more);

  function wake() {
    if (asking || arrived) return;
    asking = true;
    status.textContent = "The model is on its way …";
    if (!engine) {
      engine = start(ENGINE); // while the weights are on their way
      model.on("msg:custom", hear);
    }
    missed = setTimeout(() => give("No kernel answers. Run the cell to ask the model yourself."), PATIENCE);
    model.send({ weights: model.get("weights") });
  }
  async function hear({ weights, error }, [view] = []) {
    if (weights !== model.get("weights") || arrived) return;
    clearTimeout(missed);
    if (error) {
      asking = false;
      return give(`The model could not start: ${error}.`, button("Try again", wake));
    }
    arrived = true;
    try {
      const said = await engine.open(() => {
        const bytes = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
        return ["load", bytes, [bytes]];
      });
      status.textContent = "";
      await ready({ newest }, said);
    } catch (reason) {
      asking = arrived = false;
      give(`The model could not start: ${reason.message}.`, button("Try again", wake));
    }
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
  const near = (entries) => entries.some((entry) => entry.isIntersecting) && wake();
  const seen = new IntersectionObserver(near, { rootMargin: "300px" }), online = () => engine && wake();
  seen.observe(root);
  addEventListener("online", online);
  return () => {
    seen.disconnect();
    removeEventListener("online", online);
    clearTimeout(missed);
    if (engine) model.off("msg:custom", hear);
    engine?.stop();
  };
}
