// The laboratory's settings and ledger on the page, one row per run, and the reader's bet on the next run.
import { percent, since, told } from "./ledger.js";
import { called, choices, TASKS, TRAINING } from "./settings.js";
import { OUTCOMES } from "./verdict.js";
import { format } from "../shared/math.js";
import { button, disable, h, select } from "../shared/ui.js";

// A list for each setting. `change` receives the reader's choice.
export function makeControls(change) {
  const lists = choices.map(({ name, label, values }) => {
    const field = select(label, values.map((value) => called(name, value)), (n) => change({ [name]: values[n] }));
    return { name, values, ...field };
  });
  const [task, ...rest] = lists, isTraining = ({ name }) => TRAINING.includes(name);
  const grid = (some) => h("div", { className: "attn-settings" }, ...some.map((each) => each.node));
  function draw(settings) {
    for (const { name, values, list } of lists) list.selectedIndex = values.indexOf(settings[name]);
  }
  return {
    task: task.node, model: grid(rest.filter((each) => !isTraining(each))), training: grid(rest.filter(isTraining)),
    draw,
  };
}

// A bet on how the next run compares with an earlier one of its task.
export function makeBets() {
  const legend = h("legend"), name = `bet-${Math.random().toString(36).slice(2)}`;
  const options = ["no bet", ...OUTCOMES].map((text, n) => {
    const input = h("input", { type: "radio", name, value: n ? text : "", checked: !n });
    return { input, node: h("label", {}, input, ` ${text}`) };
  });
  const node = h("fieldset", { className: "attn-bets" }, legend, ...options.map((option) => option.node));
  function draw(other) {
    node.hidden = !other;
    if (other) legend.textContent = `Your bet: compared with run ${other.number}, the next will be`;
  }
  function put(bet) { // "" for none
    for (const { input } of options) input.checked = input.value === (bet ?? "");
  }
  function taken() { // and resets the choice
    const bet = options.find(({ input }) => input.checked).input.value;
    put("");
    return bet || null;
  }
  return { node, draw, put, taken };
}

// What the ledger says about how a run compares, and about the bet on it.
function besideWritten({ beside, bet, result, until }) {
  if (!beside) return "–";
  const steps = until ? `, steps 0 to ${until}` : "";
  const went = !result ? `beside run ${beside}: …` : result === "open" ? `open, beside run ${beside}${steps}`
    : `${result}${result === "cannot tell" ? ", beside" : " than"} run ${beside}${steps}`;
  const mark = !result || result === "open" ? "" : bet === result ? " ✓" : " ✗";
  return bet ? `${went}; bet: ${bet}${mark}` : went;
}

// `use` receives the settings of a run that the reader wants again, `remove` a run to delete; `looks` says how a run is
// drawn, `busy` which run is in progress.
export function makeLedger(use, remove) {
  const heads = ["run", "what changed", "right at the end", "right on average", "95 % after", "loss", "compared", ""];
  const body = h("tbody"), row = (...cells) => h("tr", {}, ...cells);
  const cell = (n, ...inside) => h("td", { "data-head": heads[n] }, ...inside);
  const head = h("thead", {}, row(...heads.map((text) => (text ? h("th", { scope: "col" }, text) : h("td")))));
  const node = h("div", { className: "attn-ledger", role: "region", tabIndex: 0, "aria-label": "Your runs" },
    h("table", {}, head, body));
  function drawRow(run, earlier, look, busy) {
    const { settings, seeds, stored, number } = run, { right, score, good, loss, steps } = told(run);
    const first = `${TASKS[settings.task]}, ${settings.n_layers} layers of ${settings.d_model}`;
    const what = earlier.length ? since(settings, earlier) || "nothing" : first;
    const more = [seeds.length > 1 ? `${seeds.length} seeds` : "", stored ? "made before" : ""].filter(Boolean);
    const named = (text, does, label) => {
      const one = button(text, does);
      one.setAttribute("aria-label", `${label} run ${number}`);
      return one;
    };
    const drop = named("delete", () => remove(run), "Delete"), swatch = h("i", { className: `attn-swatch ${look}` });
    disable(drop, busy);
    return row(h("th", { scope: "row" }, swatch, String(number)),
      cell(1, what, more.length ? ` (${more.join(", ")})` : ""), cell(2, percent(right)), cell(3, percent(score)),
      cell(4, good === null ? "never" : `${good} steps`), cell(5, steps ? format(loss, loss < 0.1 ? 3 : 2) : "–"),
      cell(6, besideWritten(run)),
      cell(7, named("set", () => use(settings), "Set the switches of"), ...(stored ? [] : [" ", drop])));
  }
  function draw(runs, looks, busy) {
    const rows = runs.map((run, n) => drawRow(run, runs.slice(0, n), looks(run), run === busy));
    const stay = rows.length === body.children.length && rows.every((row, n) => row.isEqualNode(body.children[n]));
    if (!stay) body.replaceChildren(...rows); // only if needed: it would swallow a press on a row's button
  }
  return { node, draw };
}
