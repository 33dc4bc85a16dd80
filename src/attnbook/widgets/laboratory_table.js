// The laboratory's ledger on the page: a row a run, and the reader's bet on the next one.
import { changes, told } from "./laboratory_ledger.js";
import { called, choices, TASKS } from "./laboratory_settings.js";
import { percent } from "./laboratory_view.js";
import { format } from "./math.js";
import { h, select } from "./ui.js";

export const BETS = ["better", "the same", "worse"];

// A list for each setting, and the line of what it makes. `change` gets what the reader chose.
export function makeControls(change) {
  const lists = choices.map(({ name, label, values }) => {
    const field = select(label, values.map((value) => called(name, value)), (n) => change({ [name]: values[n] }));
    return { name, values, ...field };
  });
  const [task, ...rest] = lists, node = h("div", { className: "attn-settings" }, ...rest.map((each) => each.node));
  const draw = (settings) => lists.forEach(({ name, values, list }) => (list.selectedIndex = values.indexOf(settings[name])));
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
    if (other) legend.textContent = `Your bet: beside run ${other.number}, the next one will be`;
  }
  function taken() { // and the next bet is open
    const bet = options.find(({ input }) => input.checked).input.value;
    options[0].input.checked = true;
    return bet || null;
  }
  return { node, draw, taken };
}

// `use` gets the settings of a run that the reader takes up again.
export function makeLedger(use) {
  const body = h("tbody");
  const heads = ["run", "what changed", "right at the end", "right on average", "95 % after", "loss", "your bet", ""];
  const node = h("div", { className: "attn-ledger", role: "region", tabIndex: 0, "aria-label": "Your runs" }, h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))), body));
  function draw(runs, looks) {
    body.replaceChildren(...runs.map((run, n) => {
      const { right, score, good, loss, steps } = told(run);
      const since = n ? changes(run.settings, runs[n - 1].settings) : [];
      const first = `${TASKS[run.settings.task]}, ${run.settings.n_layers} layers of ${run.settings.d_model}`;
      const what = n === 0 ? first : since.join("; ") || "nothing";
      const many = run.seeds.length > 1 ? `, ${run.seeds.length} seeds` : "";
      const bet = run.bet ? `${run.bet}: ${run.result ?? "…"}${run.result ? (run.result === run.bet ? " ✓" : " ✗") : ""}` : run.result ?? "–";
      const swatch = h("i", { className: `attn-swatch ${looks(run)}`, "aria-hidden": "true" });
      return h("tr", {}, h("th", { scope: "row" }, swatch, String(run.number)),
        h("td", { className: "attn-what" }, what, many, run.stored ? " (made before)" : ""),
        h("td", {}, percent(right)), h("td", {}, percent(score)),
        h("td", {}, good ? `${good} steps` : "never"), h("td", {}, steps ? format(loss, loss < 0.1 ? 3 : 2) : "–"),
        h("td", { className: "attn-bet" }, run.bet || run.result ? bet : "–"),
        h("td", {}, h("button", { type: "button", "aria-label": `Set run ${run.number}'s switches`, onclick: () => use(run.settings) }, "set")));
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
