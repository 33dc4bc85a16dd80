// AblationMap: the drawing of a Transformer whose parts can be taken away, with stored runs of models without them.
import { live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { makeBoard, makeMap, mark } from "../transformer_map/map.js";
import { makeRuns } from "./runs.js";

const namesOf = (model) => model.get("runs").flatMap(({ off }) => off);

const linkedState = (model, el) => stateControls(el, model.get("name"),
  () => ({ off: [namesOf(model).indexOf(model.get("off")) + 1] }),
  ({ off: [n] }) => put(model, { off: namesOf(model)[n - 1] ?? "" }));

function draw(model, { runs, rule, map, show }) {
  const off = model.get("off");
  show(map);
  mark(map, off, true);
  runs.draw(off);
  rule.replaceChildren(...runs.said(off));
}

function render({ model, el }) {
  const link = linkedState(model, el), runs = makeRuns(model.get("runs"));
  const choose = (part) => put(model, { off: model.get("off") === part ? "" : part });
  const map = makeMap(model.get("picture"), namesOf(model), choose);
  const parts = { ...makeBoard(model.get("title"), [], runs.node, link.bar), runs, map };
  const ask = onceAFrame(() => draw(model, parts)), changes = { off: ask, runs: (again) => again() };
  return live({ model, el, root: parts.root, state: link, ask, changes, sized() {}, render });
}

export default { render };
