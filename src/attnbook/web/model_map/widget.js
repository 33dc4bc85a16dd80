// ModelMap: a decoder or an encoder as one drawing: its parts' parameters and cache, their names, and what another
// model has in their place.
import { grouped } from "../shared/math.js";
import { live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { makeBoard, makeMap, makeSwitch, mark } from "../transformer_map/map.js";
import { makeLedger, sum } from "./ledger.js";
import { pairParts } from "./pairs.js";

// Two models of different sizes can only be exchanged as a whole.
function changesOf(model) {
  const models = model.get("models"), changes = model.get("changes");
  return changes.length || models.length < 2 ? changes : [{ name: "all", parts: [] }];
}
// In alphabetical order: a link stores an index, and a kernel and a page may hold the names in different orders.
const namesOf = (model) => [...new Set(model.get("models").flatMap(({ names }) => Object.keys(names)))].sort();
// Counts by part, and the bytes of the whole cache.
function countsOf(model) {
  const numbers = model.get("ledgers")[model.get("exchanged").join(" ")], [n, bytes] = model.get("cache");
  const times = (name) => (name === "cache" ? n * bytes : 1);
  return Object.fromEntries(model.get("rows").map((name, k) => [name, numbers[k] * times(name)]));
}
const takenOf = (model) => {
  const taken = model.get("exchanged");
  return { taken, all: taken.length > 0 && taken.length === changesOf(model).length };
};

const TITLES = { keys: "Grouped queries" }; // the small model has another number of heads
const workedOf = (model, name) => model.get("worked")?.[name]; // an older notebook stores none

// Makes an exchange or takes it back. When a part that has worked numbers is swapped in, it opens.
function turn(model, { name, opens }, names) {
  const taken = model.get("exchanged"), exchanged = names.filter((other) => taken.includes(other) !== (other === name));
  put(model, { exchanged, ...(workedOf(model, name) && exchanged.includes(name) ? { part: opens } : {}) });
}

// ---- elements
function makeSwitches(model) {
  const models = model.get("models"), names = changesOf(model).map(({ name }) => name), switches = [];
  if (models.length < 2) return switches;
  const taken = () => model.get("exchanged"), set = (exchanged) => () => put(model, { exchanged });
  switches.push(makeSwitch("Model", models.map(({ name }, n) =>
    [name, () => (n ? takenOf(model).all : !taken().length), set(n ? names : [])])));
  const each = model.get("changes").map((change) =>
    [change.said[1], () => taken().includes(change.name), () => turn(model, change, names)]);
  return each.length > 1 ? [...switches, makeSwitch("Exchange", each)] : switches;
}

function build(model, { bar }, choose) {
  const ledger = makeLedger(model.get("cache")[0]), names = namesOf(model);
  const maps = model.get("pictures").map((svg) => makeMap(svg, names, choose));
  const exchange = model.get("changes").length ? pairParts(...maps) : null;
  return { ...makeBoard(model.get("title"), makeSwitches(model), ledger.node, bar), ledger, maps, exchange };
}

function linkedState(model, el) {
  const names = namesOf(model), changes = changesOf(model).map(({ name }) => name), bit = (k) => 2 ** k;
  return stateControls(el, model.get("name"), () => ({
    part: [names.indexOf(model.get("part")) + 1],
    exchanged: [changes.reduce((bits, name, k) => bits + bit(k) * model.get("exchanged").includes(name), 0)],
  }), ({ part: [n], exchanged: [bits] }) => put(model, {
    part: names[n - 1] ?? "", exchanged: changes.filter((_, k) => Math.floor(bits / bit(k)) % 2 === 1),
  }));
}

// ---- drawing
function said(model, counts) {
  const models = model.get("models"), { taken, all } = takenOf(model);
  const chosen = model.get("changes").filter(({ name }) => taken.includes(name));
  const some = chosen.map((change) => change.said[1]).join(", ");
  const which = models[Number(all)].name + (some && !all ? ` with ${some}` : "");
  const bytes = counts.cache / model.get("cache")[0];
  const cache = bytes ? ` A token keeps ${grouped(bytes)} bytes in the cache, two for a number.` : "";
  return `${which}: ${grouped(sum(counts))} parameters.${cache}`;
}

// The names of a part in the model that it comes from.
function namesNow(model, part) {
  const { taken, all } = takenOf(model);
  const change = model.get("changes").find(({ opens }) => opens === part);
  const { names } = model.get("models")[Number(all || taken.includes(change?.name))];
  return names[part];
}

function draw(model, parts) {
  const part = model.get("part"), { taken } = takenOf(model), counts = countsOf(model);
  for (const { name, parts: named } of model.get("changes")) {
    for (const each of named) parts.exchange(each, taken.includes(name));
  }
  parts.show(parts.maps[Number(!parts.exchange && taken.length > 0)]);
  for (const map of parts.maps) mark(map, part);
  parts.rule.textContent = said(model, counts);
  const change = model.get("changes").find(({ name, opens }) => opens === part && taken.includes(name));
  parts.ledger.draw(counts, part, namesNow(model, part), change && (TITLES[change.name] ?? change.said[1]),
    change && workedOf(model, change.name));
}

function render({ model, el }) {
  const link = linkedState(model, el), parts = build(model, link, choose);
  function choose(part) { put(model, { part: model.get("part") === part ? "" : part }); }
  const ask = onceAFrame(() => draw(model, parts));
  const changes = { exchanged: ask, part: ask, ledgers: (again) => again() };
  return live({ model, el, root: parts.root, state: link, ask, changes, sized() {}, render });
}

export default { render };
