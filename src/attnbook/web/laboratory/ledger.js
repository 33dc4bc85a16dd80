// The laboratory's runs as a ledger: what changed, how good each was, who won a bet; no DOM. A run is { number,
// settings, seeds, bet, result }; each of its seeds { seed, losses, tests }, and a test { step, loss, exact, tokens }.
import { format } from "../shared/math.js";
import { called, choices } from "./settings.js";

export const SAME = 0.03; // shares of right answers closer than this are called the same
const GOOD = 0.95;

// What changed between two settings, in words.
export function changes(now, before) {
  return choices.filter(({ name }) => now[name] !== before[name])
    .map(({ name, label }) => `${label}: ${called(name, before[name])} → ${called(name, now[name])}`);
}

// The number of a test that says how much is right: whole answers, or characters of a text.
export const rightOf = ({ exact, tokens }) => exact ?? tokens;
const average = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

// Of the tests that all seeds have made, by step: mean, least and largest of what `get` gives.
export function band(seeds, get) {
  const count = Math.min(...seeds.map(({ tests }) => tests.length));
  return Array.from({ length: Number.isFinite(count) ? count : 0 }, (_, n) => {
    const all = seeds.map(({ tests }) => get(tests[n]));
    return { step: seeds[0].tests[n].step, mean: average(all), least: Math.min(...all), most: Math.max(...all) };
  });
}

// What is right on average from the first step to `until`: a run that learns sooner, or more, has more.
export function score({ seeds }, until = Infinity) {
  return average(band(seeds, rightOf).filter(({ step }) => step <= until).map(({ mean }) => mean));
}

// How a run went beside another one of its task, over the steps that both made: "better", "worse" or "the same".
export function verdict(run, other) {
  const until = Math.min(...[run, other].map(lastStep)), gain = score(run, until) - score(other, until);
  return Math.abs(gain) < SAME ? "the same" : gain > 0 ? "better" : "worse";
}
export const lastStep = ({ seeds }) => band(seeds, rightOf).at(-1)?.step ?? 0;

// The run that is compared with a run of these settings: among the tested runs of its task the one that differs in
// the fewest settings; among equals the newest.
export function rival(runs, settings) {
  const far = (run) => changes(settings, run.settings).length;
  return runs.filter((run) => run.settings.task === settings.task && lastStep(run) > 0)
    .reduce((near, run) => (near && far(near) < far(run) ? near : run), undefined);
}

// What these settings change, and beside which run, if it is not the last one.
export function since(settings, runs) {
  const last = runs.at(-1), other = rival(runs, settings) ?? last;
  const found = other ? changes(settings, other.settings) : [];
  return found.join("; ") + (found.length && other !== last ? `, beside run ${other.number}` : "");
}

// What the ledger says of a run: its end, its score, and the first step with 95 % right.
export function told(run) {
  const right = band(run.seeds, rightOf), end = right.at(-1);
  return {
    steps: end?.step ?? 0, right: end?.mean ?? NaN, loss: band(run.seeds, (test) => test.loss).at(-1)?.mean ?? NaN,
    score: score(run), good: right.find(({ mean }) => mean >= GOOD)?.step ?? null,
  };
}

export const percent = (share) => (Number.isFinite(share) ? `${format(100 * share, 0)} %` : "–");

// How a run ended, and how far it has come since which change, in words.
export function end(run) {
  const { loss, right } = told(run);
  return `loss ${Number.isFinite(loss) ? format(loss) : "–"}, ${percent(right)} of held-out items right`;
}
export function progressOf(run, runs) {
  const changed = since(run.settings, runs.slice(0, runs.indexOf(run)));
  const steps = Math.min(...run.seeds.map(({ losses }) => losses.length)), many = run.seeds.length;
  return `Run ${run.number}${changed ? ` (${changed})` : ""}: step ${steps} of ${run.settings.steps}`
    + `${many > 1 ? `, each of ${many} seeds` : ""}, ${end(run)}`;
}

// A line a test of each seed, with all settings, for a spreadsheet.
export function csv(runs) {
  const names = choices.map(({ name }) => name), tested = ["step", "loss", "exact", "tokens"];
  const lines = runs.flatMap(({ number, settings, seeds, bet, result }) => seeds.flatMap(({ seed, tests }) =>
    tests.map((test) => {
      const set = names.map((name) => (name === "seed" ? seed : settings[name]));
      return [number, ...set, ...tested.map((name) => test[name] ?? ""), bet ?? "", result ?? ""].join(",");
    })));
  return [["run", ...names, ...tested, "bet", "result"].join(","), ...lines, ""].join("\n");
}
