// Compares a run with another one by their seeds, since chance alone makes seeds differ. No DOM.
import { alike } from "./settings.js";

export const ENOUGH = 5; // seeds that a run needs for a band of its own
export const OUTCOMES = ["better", "cannot tell", "worse"]; // or still "open"

// The share that is right in a test: of whole answers or, for a text, of its characters.
export const rightOf = ({ exact, tokens }) => exact ?? tokens;
export const average = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

// The last step at which all seeds of a run were tested.
export function lastStep({ seeds }) {
  const count = Math.min(...seeds.map(({ tests }) => tests.length));
  return count > 0 && Number.isFinite(count) ? seeds[0].tests[count - 1].step : 0;
}

// The band of a run: the least and largest score of its seeds. A seed's score is the share right, averaged over its
// tests up to step `until`, so a seed that learns sooner or more scores higher.
export function range({ seeds }, until = Infinity) {
  const scores = seeds.map(({ tests }) => average(tests.filter(({ step }) => step <= until).map(rightOf)));
  return { least: Math.min(...scores), most: Math.max(...scores), mean: average(scores), seeds: scores.length };
}

// "better" or "worse" if the bands do not touch, else null. With five seeds each, chance alone separates one pair in
// 126. Fewer than five seeds have no band of their own: theirs is widened, on both sides, by the width of the other.
function apart(mine, theirs) {
  const wide = ({ seeds }, other) => (seeds < ENOUGH ? other.most - other.least : 0);
  const room = wide(mine, theirs) + wide(theirs, mine);
  return mine.least - room > theirs.most ? "better" : mine.most + room < theirs.least ? "worse" : null;
}

// Compares a run with another one of its task, up to the step `until` at which both were last tested. Returns an
// outcome, or "open", and why.
export function verdict(run, other) {
  const until = Math.min(lastStep(run), lastStep(other)), [mine, theirs] = [run, other].map((one) => range(one, until));
  const said = (outcome, why) => ({ outcome, why, until, mine, theirs });
  if (!until) return said("open", "one of the two was stopped before its first test");
  const few = Math.min(mine.seeds, theirs.seeds) < ENOUGH, none = Math.max(mine.seeds, theirs.seeds) < ENOUGH;
  if (alike(run.settings, other.settings)) {
    return said(few ? "open" : "cannot tell", "nothing but chance differs between the two");
  }
  if (none) return said("open", "one seed beside one is one throw of the dice beside another: press 5 seeds");
  const found = apart(mine, theirs);
  if (found) return said(found, few ? "it lies further off than chance explains" : "their bands do not touch");
  return few ? said("open", "it may be chance: press 5 seeds") : said("cannot tell", "their bands touch");
}
