// The attention of a hidden place in MaskedWords: menus for layer and head, and a table of all heads' weights.
import { format, largest, visible } from "../shared/math.js";
import { h, select, token } from "../shared/ui.js";
import { chosen, looks, mean } from "./masked.js";
import { makeHeads } from "./view.js";

// Says in words which heads are averaged; -1 means all.
function headsWritten(layer, head) {
  if (layer < 0) return head < 0 ? "mean of all heads" : `mean of head ${head + 1} of every layer`;
  return head < 0 ? `mean of layer ${layer + 1}` : `layer ${layer + 1}, head ${head + 1}`;
}

function fillOptions(list, names) {
  if (String(names) === String(Array.from(list, (option) => option.text))) return;
  list.replaceChildren(...names.map((name) => h("option", {}, name)));
}

// `shape` is [layers, heads]; `change` receives the traits that the reader sets.
export function makeAttention(shape, change) {
  const [layers, heads] = shape, numbers = (size) => Array.from({ length: size }, (_, n) => String(n + 1));
  const which = select("hidden word", [], (n) => change({ place: n }));
  const way = select("direction", ["what it looks at", "what looks at it"], (n) => change({ into: n > 0 }));
  const layer = select("layer", ["all", ...numbers(layers)], (n) => change({ layer: n - 1 }));
  const head = select("head", ["all", ...numbers(heads)], (n) => change({ head: n - 1 }));
  const map = makeHeads(tell, (cell) => change({ layer: cell.layer, head: cell.head }));
  const readout = h("p", { className: "attn-readout" });
  const node = h("div", {}, h("p", { className: "attn-legend" }, "Attention of the hidden place, head by head"),
    h("div", { className: "attn-row" }, which.node, way.node, layer.node, head.node), map.node, readout);
  let shown; // what was drawn last

  // Writes the weight of the cell under the pointer or, without one, the tokens with the largest mean weights.
  function tell(cell) {
    const { name, row, weights, means, into } = shown, named = (place) => token(visible(row[place]));
    if (cell) {
      const two = [token(name), named(cell.place)], [from, to] = into ? two.reverse() : two;
      const weight = weights[cell.place][cell.layer * heads + cell.head];
      readout.replaceChildren(`layer ${cell.layer + 1}, head ${cell.head + 1}: `, from, " → ", to, " ",
        h("b", {}, format(weight)));
    } else {
      const most = largest(means, 3).flatMap((place, n) =>
        [n ? " · " : "", named(place), " ", h("b", {}, format(means[place]))]);
      const verb = into ? " is looked at most by " : " looks most at ";
      readout.replaceChildren(`${headsWritten(shown.layer, shown.head)}: the place of `, token(name), verb, ...most);
    }
  }

  // Draws `hidden[at]`. Returns `level`, how far each token of the row is filled, and a `legend` that explains it.
  function draw({ row, places, attention }, hidden, at, choice) {
    const place = hidden[at], name = visible(place.name), { into } = choice;
    fillOptions(which.list, hidden.map((each) => visible(each.name)));
    which.list.selectedIndex = at;
    way.list.selectedIndex = Number(into);
    layer.list.selectedIndex = choice.layer + 1;
    head.list.selectedIndex = choice.head + 1;
    const weights = looks(attention, place.place, into), on = chosen(shape, choice.layer, choice.head);
    const means = weights.map((each) => mean(each, on)), most = Math.max(...means);
    const deepest = Math.max(...weights.map((each) => Math.max(...each)));
    map.draw(row, (token) => places.includes(token), weights, shape, on, (weight) => weight / deepest,
      `Weights of ${layers * heads} heads: ${name}`);
    shown = { ...choice, name, row, weights, means };
    tell();
    const gap = ["the place of ", token(name)];
    const [from, to] = into ? [["it"], gap] : [gap, ["it"]];
    const legend = ["The fill of a word says how much ", ...from, " looks at ", ...to,
      `: ${headsWritten(choice.layer, choice.head)}. A full box: weight ${format(most, 2)}.`];
    return { level: (token) => means[token] / most, legend };
  }
  return { node, draw };
}
