// The weights of the models that a widget runs in the page. A kernel sends them; on the site, static-widgets.js does.
import { button } from "./ui.js";

const PATIENCE = 4000; // ms to wait for a kernel

// Requests each of `names`, once, when the reader comes near. `begin` is called before the first request, `take`
// receives the name of each file that arrives and a function that returns its bytes, and `ready` is called when all
// have been taken; `take` and `ready` may return a promise. `status` tells the reader what is loading and what went
// wrong. What did not arrive is requested again when the reader comes near again, is online again, or presses the
// button. `silent`: ms before the reader is told that weights are loading. `what` names one and several of the files,
// `until` says what is shown meanwhile.
export function fetchWeights({ model, root, status, names, begin = () => {}, take, ready, silent = 0,
  what = ["model", "models"], until = "Until then this is the stored answer. " }) {
  const arrived = new Set(), taken = new Set(), many = names.length > 1, models = what[Number(many)];
  let begun = false, asking = false, missed, slow;
  const give = (reason, ...more) => {
    clearTimeout(slow);
    status.replaceChildren(`${reason} ${until}`, ...more);
  };
  const quiet = () => [missed, slow].forEach(clearTimeout);

  function wake() {
    if (asking || arrived.size === names.length) return;
    asking = true;
    const awaited = `The ${models} ${many ? "are on their" : "is on its"} way …`;
    if (silent) slow = setTimeout(() => (status.textContent = awaited), silent);
    else status.textContent = awaited;
    if (!begun) {
      begin();
      model.on("msg:custom", hear);
    }
    begun = true;
    missed = setTimeout(() => give(`No kernel answers. Run the cell to ask the ${models} yourself.`), PATIENCE);
    for (const name of names.filter((each) => !arrived.has(each))) model.send({ weights: name });
  }
  async function hear({ weights, error }, [view] = []) {
    if (!names.includes(weights) || arrived.has(weights)) return;
    arrived.add(weights);
    if (arrived.size === names.length) clearTimeout(missed);
    try {
      if (error) throw new Error(error);
      await take(weights, () => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
      if (taken.add(weights).size < names.length) return;
      quiet();
      status.textContent = "";
      await ready();
    } catch (reason) {
      for (const each of [arrived, taken]) each.delete(weights);
      asking = false;
      quiet();
      give(`${many ? "A" : "The"} ${what[0]} could not start: ${reason.message}.`, button("Try again", wake));
    }
  }
  const near = (entries) => entries.some((entry) => entry.isIntersecting) && wake(), online = () => begun && wake();
  const seen = new IntersectionObserver(near, { rootMargin: "300px" });
  seen.observe(root);
  addEventListener("online", online);
  return () => {
    seen.disconnect();
    removeEventListener("online", online);
    quiet();
    if (begun) model.off("msg:custom", hear);
  };
}
