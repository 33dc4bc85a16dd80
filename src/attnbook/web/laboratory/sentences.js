// What the laboratory says of a run, and of a text that the reader gives.
import { percent, progressOf, told } from "./ledger.js";
import { TASKS } from "./settings.js";
import { format, grouped } from "../shared/math.js";

const LETTERS = 20000, LEAST = 200; // of a text

// How a run ended, for those who hear the page.
export function endWritten({ run }, stopped) {
  const went = run.result === "open" ? "still open" : `it is ${run.result}`;
  const bet = run.bet ? ` Your bet: ${run.bet}; ${went} beside run ${run.beside}.` : "";
  return `Run ${run.number} ${stopped ? "stopped" : "is over"}: ${percent(told(run).right)} right.${bet}`;
}

// Where the run under way, or the last one, has got to.
export function progressWritten(active, runs, task) {
  const idle = runs.some(({ stored }) => !stored) ? "Nothing is under way." : "Nothing has been trained yet.";
  if (!active) return `Task: ${TASKS[task]}. ${idle}`;
  const { run, ms, over, paused, error } = active;
  if (error) return `The training stopped: ${error}.`;
  return `${progressOf(run, runs)}, ${format(ms / 1000, 1)} s${over ? ". Over." : paused ? ". Paused." : "."}`;
}

// What is wrong with a text to learn, in a sentence, or nothing.
export function faultOf(text) {
  const count = [...text].length;
  if (count >= LEAST && count <= LETTERS) return "";
  return `This text has ${grouped(count)} characters. A text to learn has ${LEAST} to ${grouped(LETTERS)}: `
    + `${count < LEAST ? "add some" : "take some away"}, and it is learnt.`;
}
