// Learns the pieces of a text: the most frequent adjacent pair becomes one piece, again and again (Sennrich et al.
// 2016), as in `attnbook.text.tokenizers.merging`. Ties go to the pair with the smaller ids. No DOM.
import { Heap } from "./heap.js";
import { LETTERS, idsOfBytes, splitWords } from "./bytepair.js";

const IDS = 4096, MOST = 2 ** 22; // exceed the numbers of pieces and of places
export const LIMIT = 1000; // merges

export class Merging {
  // `apart`: whether merges stay within words.
  constructor(text, apart, least = 2) {
    this.words = apart ? splitWords(text) : text ? [text] : [];
    this.tokens = [...LETTERS];
    this.ids = new Map(LETTERS.map((name, id) => [name, id]));
    this.learnt = [];
    this.least = least;
    this.heap = new Heap();
    this.counts = new Map(); // of pairs
    this.where = new Map(); // the places of their first pieces, now or once
    this.lay();
  }

  // Lays out the bytes of all distinct words one after another: for each place its piece, its neighbours, and how often
  // its word occurs in the text.
  lay() {
    const often = new Map();
    for (const word of this.words) often.set(word, (often.get(word) ?? 0) + 1);
    this.begins = new Map();
    this.row = [];
    this.after = [];
    this.before = [];
    this.often = [];
    for (const [word, n] of often) {
      const begin = this.row.length;
      this.begins.set(word, begin);
      idsOfBytes(word).forEach((id, i) => {
        this.row.push(id);
        this.before.push(i ? begin + i - 1 : -1);
        this.after.push(begin + i + 1);
        this.often.push(n);
      });
      this.after[this.row.length - 1] = -1;
    }
    this.pieces = this.bytes = this.often.reduce((sum, n) => sum + n, 0);
    this.changed = new Set();
    this.row.forEach((id, i) => this.after[i] >= 0 && this.count(id, this.row[this.after[i]], this.often[i], i));
    this.order();
  }

  // Adds `n`, perhaps negative, to a pair's count; notes a place `at` of the pair.
  count(a, b, n, at = -1) {
    const pair = a * IDS + b;
    this.counts.set(pair, (this.counts.get(pair) ?? 0) + n);
    this.changed.add(pair);
    if (at < 0) return;
    if (!this.where.has(pair)) this.where.set(pair, []);
    this.where.get(pair).push(at);
  }
  order() {
    for (const pair of this.changed) {
      const n = this.counts.get(pair);
      if (n > 0) this.heap.push((MOST - n) * IDS * IDS + pair);
      else this.counts.delete(pair);
    }
    this.changed.clear();
  }

  // Makes the next merge; returns false if no pair is frequent enough or LIMIT is reached.
  step() {
    const { heap, counts } = this;
    while (heap.size && this.learnt.length < LIMIT) {
      const best = heap.pop(), pair = best % (IDS * IDS), n = MOST - (best - pair) / (IDS * IDS);
      if (n !== counts.get(pair)) continue; // recounted since
      if (n < this.least) break;
      this.join(pair, n);
      return true;
    }
    return false;
  }
  join(pair, n) {
    const { row, after, before, often } = this, b = pair % IDS, a = (pair - b) / IDS;
    const name = this.tokens[a] + this.tokens[b];
    if (!this.ids.has(name)) this.ids.set(name, this.tokens.push(name) - 1); // two pairs can make the same piece
    const made = this.ids.get(name), places = this.where.get(pair).sort((i, j) => i - j);
    this.where.delete(pair);
    for (const i of places) {
      const j = after[i];
      if (row[i] !== a || j < 0 || row[j] !== b) continue;
      const left = before[i], right = after[j];
      if (left >= 0) this.count(row[left], a, -often[i]);
      if (left >= 0) this.count(row[left], made, often[i], left);
      if (right >= 0) this.count(b, row[right], -often[i]);
      if (right >= 0) this.count(made, row[right], often[i], i);
      row[i] = made;
      row[j] = -1;
      after[i] = right;
      if (right >= 0) before[right] = i;
      this.pieces -= often[i];
    }
    this.counts.delete(pair);
    this.changed.delete(pair);
    this.order();
    this.learnt.push({ a, b, made, count: n });
  }

  // The `most` commonest pairs, the next merge first.
  common(most) {
    const key = ([pair, n]) => (MOST - n) * IDS * IDS + pair;
    const first = [...this.counts].map(key).sort((x, y) => x - y).slice(0, most);
    return first.map((x) => {
      const pair = x % (IDS * IDS), b = pair % IDS;
      return { a: (pair - b) / IDS, b, count: MOST - (x - pair) / (IDS * IDS) };
    });
  }

  // The pieces of the first words, at most `most` pieces in all.
  begin(most) {
    const shown = [];
    let left = most;
    for (const word of this.words) {
      const pieces = [];
      for (let i = this.begins.get(word); i >= 0 && left > 0; i = this.after[i], left--) pieces.push(this.row[i]);
      if (pieces.length) shown.push(pieces);
      if (left <= 0) break;
    }
    return shown;
  }
}
