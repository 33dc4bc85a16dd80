// Runs by their cost: the loss after a number of operations, and the size that has the lowest. No DOM.
import { format, grouped } from "../shared/math.js";
import { average } from "./verdict.js";

// The loss of a run after a number of operations, interpolated between two tests: the mean, least and largest of its
// seeds; null if a seed has not come that far, or if that is before the first test after step 0.
export function lossAt({ seeds, sizes }, operations) {
  if (!sizes) return null;
  const step = operations / sizes.operations, losses = seeds.map(({ tests }) => {
    const after = tests.findIndex((test) => test.step >= step), [a, b] = [tests[after - 1], tests[after]];
    if (!a || (!a.step && b.step > step)) return undefined;
    return a.loss + ((step - a.step) / (b.step - a.step)) * (b.loss - a.loss);
  });
  if (losses.some((loss) => loss === undefined)) return null;
  return { mean: average(losses), least: Math.min(...losses), most: Math.max(...losses), seeds: losses.length };
}

// The operations at the first test after step 0 of any of these runs, and at the last test.
export function span(runs) {
  const steps = runs.filter(({ sizes }) => sizes).flatMap(({ seeds, sizes }) =>
    seeds.flatMap(({ tests }) => tests.filter(({ step }) => step).map(({ step }) => step * sizes.operations)));
  return steps.length ? [Math.min(...steps), Math.max(...steps)] : null;
}

// The runs that have come that far, each with its loss there, in order of the size of their blocks.
export const atCost = (runs, operations) => runs.map((run) => ({ run, ...lossAt(run, operations) }))
  .filter(({ mean }) => Number.isFinite(mean)).sort((a, b) => a.run.sizes.body - b.run.sizes.body);

// The run with the lowest mean loss of each size: a size is judged by its best learning rate.
export const bestOfSizes = (points) => points.filter(({ run: { sizes: { body } }, mean }) =>
  points.every((other) => other.run.sizes.body !== body || other.mean >= mean));

const SUPER = [..."⁰¹²³⁴⁵⁶⁷⁸⁹"];
export const power = (n) => `10${[...String(n)].map((digit) => SUPER[digit]).join("")}`;
export function operationsWritten(operations) {
  const n = Math.floor(Math.log10(operations));
  return `${format(operations / 10 ** n, 1)} · ${power(n)}`;
}

// Says which size is best for this number of operations, and which others cannot be told apart from it.
export function bestWritten(points, operations) {
  const best = bestOfSizes(points), cost = `After ${operationsWritten(operations)} operations`;
  if (best.length < 2) {
    return `${cost}: ${best.length ? "one size" : "no run"} has come so far. Two sizes are compared at least.`;
  }
  const first = best.reduce((low, point) => (point.mean < low.mean ? point : low));
  const near = best.filter((point) => point !== first && point.least <= first.most);
  const lone = best.some(({ seeds }) => seeds < 2);
  const named = ({ run: { number, sizes: { body } } }) => `run ${number} (${grouped(body)} parameters)`;
  const found = `${cost} the lowest loss is that of ${named(first)}: ${format(first.mean, 3)}`;
  if (lone) return `${found}. A size with a single seed has no band: 5 seeds tell more.`;
  if (!near.length) return `${found}. Its band touches no other.`;
  return `${found}. Its band touches that of ${near.map(named).join(", ")}: between these one cannot tell.`;
}
