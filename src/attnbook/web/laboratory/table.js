// The laboratory's ledger on the page: a row a run, and the reader's bet on the next one.
import { percent, since, told } from "./ledger.js";
import { called, choices, TASKS } from "./settings.js";
import { format } from "../shared/math.js";
import { h, select } from "../shared/ui.js";

export const BETS = ["better", "the same", "worse"];

// A list for each setting. `change` gets what the reader chose.
export function makeControls(change) {
  const lists = choices.map(({ name, label, values }) => {
    const field = select(label, values.map((value) => called(name, value)), (n) => change({ [name]: values[n] }));
    return { name, values, ...field };
  });
  const [task, ...rest] = lists, node = h("div", { className: "attn-settings" }, ...rest.map((each) => each.node));
  function draw(settings) {
    for (const { name, values, list } of lists) list.selectedIndex = values.indexOf(settings[name]);
  }
  return { task: task.node, node, draw };
}

// A bet on the next run, beside an earlier one of its task.
export function makeBets() {
  const legend = h("legend"), name = `bet-${Math.random().toString(36).slice(2)}`;
  const options = ["no bet", ...BETS].map((text, n) => {
    const input = h("input", { type: "radio", name, value: n ? text : "", checked: !n });
    return { input, node: h("label", {}, input, ` ${text}`) };
  });
  const node = h("fieldset", { className: "attn-bets" }, legend, ...options.map((option) => option.node));
  function draw(other) {
    node.hidden = !other;
    if (other) legend.textContent = `Your bet: compared with run ${other.number}, the next will be`;
  }
  function taken() { // and the next bet is open
    const bet = options.find(({ input }) => input.checked).input.value;
    options[0].input.checked = true;
    return bet || null;
  }
  return { node, draw, taken };
}

// The cell of the ledger for a bet and how the run went.
function settledBet({ bet, result = "…" }) {
  if (!bet) return result === "…" ? "–" : `no bet: ${result}`;
  return `${bet}: ${result}${result === "…" ? "" : bet === result ? " ✓" : " ✗"}`;
}

// `use` gets the settings of a run that the reader takes up again; `looks` says how a run is drawn.
export function makeLedger(use) {
  const heads = [
    "run", "what changed", "right at the end", "right on average", "95 % after", "loss", "your bet", "switches",
  ];
  const body = h("tbody"), row = (...cells) => h("tr", {}, ...cells), cell = (...inside) => h("td", {}, ...inside);
  const head = h("thead", {}, row(...heads.map((text) => h("th", { scope: "col" }, text))));
  const node = h("div", { className: "attn-ledger", role: "region", tabIndex: 0, "aria-label": "Your runs" },
    h("table", {}, head, body));
  function draw(runs, looks) {
    body.replaceChildren(...runs.map((run, n) => {
      const { settings, seeds, stored, number } = run, { right, score, good, loss, steps } = told(run);
      const first = `${TASKS[settings.task]}, ${settings.n_layers} layers of ${settings.d_model}`;
      const what = n ? since(settings, runs.slice(0, n)) || "nothing" : first;
      const more = [seeds.length > 1 ? `${seeds.length} seeds` : "", stored ? "made before" : ""].filter(Boolean);
      const again = { type: "button", "aria-label": `Set the switches of run ${number}`, onclick: () => use(settings) };
      const swatch = h("i", { className: `attn-swatch ${looks(run)}`, "aria-hidden": "true" });
      return row(h("th", { scope: "row" }, swatch, String(number)),
        cell(what, more.length ? ` (${more.join(", ")})` : ""), cell(percent(right)), cell(percent(score)),
        cell(good ? `${good} steps` : "never"), cell(steps ? format(loss, loss < 0.1 ? 3 : 2) : "–"),
        cell(settledBet(run)), cell(h("button", again, "set")));
    }));
  }
  return { node, draw };
}

// Gives the reader a file.
export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
