// What PromptBench asks: the prompt built from its parts, what is wrong with it, and the model's answer; no DOM.
import { uniform } from "../engine/random.js";
import { fall, leave } from "../engine/sampling.js";

export const MOST = { letters: 2000, examples: 12, candidates: 8 }, SHOWN = 8;
const HOLE = "{}";
export const hasHole = ({ form }) => form.includes(HOLE);
export const same = (a, b) => JSON.stringify(parts(a)) === JSON.stringify(parts(b));
const parts = ({ form, text, examples, candidates, chat, system, begin }) => // what is not sent makes no difference
  [form, form.includes(HOLE) && text, examples, candidates, chat, chat && system, chat && begin];

// The text that is sent: the examples with their labels, then the question, in the chat template if that is on.
export function built({ form, text, examples, chat, system, begin }, template) {
  const put = (given) => (form.includes(HOLE) ? form.replace(HOLE, () => given) : given);
  const shown = examples.map(([example, label]) => `${put(example)}${label}\n\n`).join("");
  const whole = shown + (form.includes(HOLE) ? put(text) : form);
  if (!chat) return whole;
  const fills = { "{system}": system, "{user}": whole };
  return template.split(/(\{system\}|\{user\})/).map((part) => fills[part] ?? part).join("") + begin;
}

// Why a prompt can't be asked, in a sentence; "" if it can.
export function problem(asked, template) {
  const { form, candidates } = asked;
  if (form.split(HOLE).length > 2) return "The prompt must have one {} at most, where the text goes.";
  if (new Set(candidates).size < candidates.length) return "A candidate is written twice: each must be another text.";
  if (!built(asked, template).trim()) return "The prompt is empty: write something for the model to go on with.";
  return "";
}

const logpOf = ({ order, logp }, id) => logp[order.indexOf(id)];

// The log-probability of each row of ids after a prompt: the sum over its tokens. `first` is the model's answer to the
// prompt.
async function scored(ids, rows, first, next) {
  const known = new Map([["", first]]), found = [];
  for (const row of rows) {
    let sum = 0;
    for (let n = 0; n < row.length; n++) {
      const key = row.slice(0, n).join();
      if (!known.has(key)) known.set(key, await next([...ids, ...row.slice(0, n)]));
      if (!known.get(key)) return undefined; // a newer question came
      sum += logpOf(known.get(key), row[n]);
    }
    found.push(sum);
  }
  return found;
}

// What the model says, as Python stores it: { ids, answer: { tokens, candidates, next } }, or { wrong }, a sentence;
// undefined if a newer question came. `encode` returns the ids of a text, `next` the model's answer after ids, and
// `heard` receives how many tokens were read, and of how many.
export async function answerTo(asked, { template, room, names, encode, next, heard }) {
  const ids = await encode(built(asked, template), asked.chat), rows = [];
  for (const text of asked.candidates) rows.push(await encode(text, false));
  if (!ids.length || rows.some((row) => !row.length)) return { wrong: "The vocabulary has no token for this text." };
  const size = ids.length + Math.max(1, ...rows.map((row) => row.length)) - 1;
  if (size > room) return { wrong: `The prompt has ${size} tokens; the model reads ${room} here at most.` };
  const first = await next(ids, (read) => heard?.(read, ids.length));
  const sums = first && await scored(ids, rows, first, next);
  if (!sums) return undefined;
  const named = (some) => Array.from(some, (id) => names[id]);
  const candidates = asked.candidates.map((text, n) => ({ text, tokens: named(rows[n]), logp: sums[n] }));
  const likely = Array.from(first.order.slice(0, SHOWN), (id, n) => [id, names[id], first.logp[n]]);
  return { ids, answer: { tokens: named(ids), candidates, next: likely } };
}

// Each candidate with its share of their total probability.
export function shares(candidates) {
  const most = Math.max(...candidates.map(({ logp }) => logp));
  const sum = candidates.reduce((all, { logp }) => all + Math.exp(logp - most), 0);
  return candidates.map((each) => ({ ...each, share: Math.exp(each.logp - most) / sum }));
}

// The state in a link, as lists of strings or of numbers, and back. Lists that may be empty begin with an extra "", so
// that they always are lists of strings.
export function toLink({ form, text, examples, candidates, chat, system, begin }) {
  return { form: [form], text: [text], examples: ["", ...examples.flat()], candidates: ["", ...candidates],
    chat: [Number(chat)], system: [system], begin: [begin] };
}
export function fromLink({ form: [form], text: [text], examples, candidates, chat: [chat], system: [system],
  begin: [begin] }) {
  const short = (given) => String(given).slice(0, MOST.letters), flat = examples.slice(1).map(short);
  const pairs = Array.from({ length: Math.min(MOST.examples, Math.floor(flat.length / 2)) },
    (_, n) => flat.slice(2 * n, 2 * n + 2));
  const [given, asks, leads, begins] = [form, text, system, begin].map(short);
  const few = candidates.slice(1).map(short).filter(Boolean).slice(0, MOST.candidates);
  return { form: given, text: asks, examples: pairs, candidates: few.map((each) => each.replace(/\n/g, " ")),
    chat: chat === 1, system: leads, begin: begins };
}

// The id that random number n of a seed falls on; at temperature 0 the likeliest.
export function drawn({ order, logp }, temperature, seed, n) {
  return order[fall(leave(logp, { temperature, topK: 0, topP: 1, minP: 0 }), uniform(seed, n)).rank];
}

// Names of tokens as texts, [text, whether it is a special token]; the bytes of neighbouring tokens are decoded
// together.
export function textOf(names, special) {
  const runs = [], encoder = new TextEncoder();
  const bytesOf = (name) => (/^(\\x[0-9a-f]{2})+$/.test(name)
    ? name.match(/[0-9a-f]{2}/g).map((two) => parseInt(two, 16)) : [...encoder.encode(name)]);
  for (const name of names) {
    const mark = special.has(name);
    if (mark || !runs.length || runs.at(-1)[1]) runs.push([[], mark]);
    runs.at(-1)[0].push(...bytesOf(name));
  }
  return runs.map(([bytes, mark]) => [new TextDecoder().decode(Uint8Array.from(bytes)), mark]);
}
