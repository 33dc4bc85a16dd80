// What the laboratory says about a run, and about a text that the reader enters.
import { percent, progressOf, told } from "./ledger.js";
import { TASKS } from "./settings.js";
import { format, grouped } from "../shared/math.js";

const LETTERS = 20000, LEAST = 200; // characters of a text

// How a run ended, for screen readers.
export function endWritten({ run }, stopped) {
  const went = run.result === "open" ? "still open" : `it is ${run.result}`;
  const bet = run.bet ? ` Your bet: ${run.bet}; ${went} beside run ${run.beside}.` : "";
  return `Run ${run.number} ${stopped ? "stopped" : "is over"}: ${percent(told(run).right)} right.${bet}`;
}

// The progress of the run in progress, or of the last one.
export function progressWritten(active, runs, task) {
  const idle = runs.some(({ stored }) => !stored) ? "Nothing is under way." : "Nothing has been trained yet.";
  if (!active) return `Task: ${TASKS[task]}. ${idle}`;
  const { run, ms, over, paused, error } = active;
  if (error) return `The training stopped: ${error}.`;
  return `${progressOf(run, runs)}, ${format(ms / 1000, 1)} s${over ? ". Over." : paused ? ". Paused." : "."}`;
}

// What is wrong with a text to learn, in a sentence; "" if nothing is.
export function faultOf(text) {
  const count = [...text].length;
  if (count >= LEAST && count <= LETTERS) return "";
  return `This text has ${grouped(count)} characters. A text to learn has ${LEAST} to ${grouped(LETTERS)}: `
    + `${count < LEAST ? "add some" : "take some away"}, and it is learnt.`;
}
