// The laboratory's runs as a ledger: what changed, how good each was, what it is compared with; no DOM. A run is
// { number, settings, sizes, seeds, bet, beside, result }, each of its seeds is { seed, done, losses, tests }, and a
// test is { step, loss, exact, tokens }.
import { format } from "../shared/math.js";
import { alike, changes, choices, differing } from "./settings.js";
import { average, ENOUGH, lastStep, range, rightOf, verdict } from "./verdict.js";

const GOOD = 0.95;

// The mean, least and largest of what `get` returns, at each step at which all seeds were tested.
export function band(seeds, get) {
  const count = Math.min(...seeds.map(({ tests }) => tests.length));
  return Array.from({ length: Number.isFinite(count) ? count : 0 }, (_, n) => {
    const all = seeds.map(({ tests }) => get(tests[n]));
    return { step: seeds[0].tests[n].step, mean: average(all), least: Math.min(...all), most: Math.max(...all) };
  });
}

// The run with which a run of these settings is compared: of the tested runs of the same task (and text), the one that
// differs in the fewest settings; among equals the one with more seeds, then the newest. A run of the same settings
// with fewer than five seeds tells nothing: it is left out if there is another one.
export function rival(runs, settings) {
  const same = (run) => run.settings.task === settings.task && run.settings.text === settings.text;
  const far = (run) => differing(settings, run.settings).filter((name) => name !== "seed").length;
  const nearer = (run, near) => far(run) - far(near) || near.seeds.length - run.seeds.length;
  const tested = runs.filter((run) => same(run) && lastStep(run) > 0);
  const telling = tested.filter((run) => run.seeds.length >= ENOUGH || !alike(settings, run.settings));
  return (telling.length ? telling : tested)
    .reduce((near, run) => (near && nearer(run, near) > 0 ? near : run), undefined);
}

// What these settings change, and compared with which run, if it is not the last one.
export function since(settings, runs) {
  const last = runs.at(-1), other = rival(runs, settings) ?? last;
  const found = other ? changes(settings, other.settings) : [];
  return found.join("; ") + (found.length && other !== last ? `, beside run ${other.number}` : "");
}

// Settles a run's result by comparing it with its run `beside`, if that one is still there.
export function settle(run, runs) {
  const other = runs.find(({ number }) => number === run.beside);
  if (!other) return undefined;
  const found = verdict(run, other);
  [run.result, run.until] = [found.outcome, found.until];
  return found;
}

// What the ledger says about a run: how it ended, its average, and the first step with 95 % right.
export function told(run) {
  const right = band(run.seeds, rightOf), end = right.at(-1);
  return {
    steps: end?.step ?? 0, right: end?.mean ?? NaN, loss: band(run.seeds, (test) => test.loss).at(-1)?.mean ?? NaN,
    score: range(run).mean, good: right.find(({ mean }) => mean >= GOOD)?.step ?? null,
  };
}

export const percent = (share) => (Number.isFinite(share) ? `${format(100 * share, 0)} %` : "–");
const between = ({ least, most, seeds }) => {
  const [low, high] = [least, most].map((x) => format(100 * x, 0));
  return `${low === high ? low : `${low} to ${high}`} % (${seeds === 1 ? "1 seed" : `${seeds} seeds`})`;
};

// A verdict in a sentence: what is compared with what, over which steps, and what follows.
export function judged({ number }, { number: other }, { outcome, why, until, mine, theirs }) {
  const word = outcome === "open" ? "Still open" : outcome === "cannot tell" ? "Cannot tell" : outcome;
  const compared = until ? `Right on average over the steps 0 to ${until}, which both made: run ${number} `
    + `${between(mine)}, run ${other} ${between(theirs)}. ` : "";
  return `${compared}${["open", "cannot tell"].includes(outcome) ? word : `Run ${number} is ${word}`}: ${why}.`;
}

// The loss and the share right of a run, in words; and its progress, with what it changed.
export function end(run) {
  const { loss, right } = told(run);
  return `loss ${Number.isFinite(loss) ? format(loss) : "–"}, ${percent(right)} of held-out items right`;
}
export function progressOf(run, runs) {
  const changed = since(run.settings, runs.slice(0, runs.indexOf(run)));
  const steps = Math.min(...run.seeds.map(({ done }) => done)), many = run.seeds.length;
  return `Run ${run.number}${changed ? ` (${changed})` : ""}: step ${steps} of ${run.settings.steps}`
    + `${many > 1 ? `, each of ${many} seeds` : ""}, ${end(run)}`;
}

// One line for each test of each seed, with all settings, for a spreadsheet.
export function csv(runs) {
  const names = choices.map(({ name }) => name), tested = ["step", "loss", "exact", "tokens"];
  const more = ({ bet, beside, result }) => [bet, beside, result].map((x) => x ?? "");
  const lines = runs.flatMap((run) => run.seeds.flatMap(({ seed, tests }) => tests.map((test) => {
    const set = names.map((name) => (name === "seed" ? seed : run.settings[name]));
    const operations = run.sizes ? test.step * run.sizes.operations : "";
    return [run.number, ...set, ...tested.map((name) => test[name] ?? ""), operations, ...more(run)].join(",");
  })));
  return [["run", ...names, ...tested, "operations", "bet", "beside", "result"].join(","), ...lines, ""].join("\n");
}
