// A model of the Llama family, computed directly from the quantised blocks of its GGUF file: it reads a text token by
// token, keeps each layer's keys and values, and predicts the next token (Touvron et al. 2023; SmolLM2 is one).
import { bytePair } from "./bytepair.js";
import { readHead } from "./gguf.js";
import { BLOCK, kernels, START, UNPACK } from "./plain.js";

const SIZE = 32, PACKED = 4; // entries of a block; the most bytes that an entry of a packed vector takes

function sizesOf(facts, room) {
  const kind = facts["general.architecture"], fact = (name) => facts[`${kind}.${name}`];
  if (kind !== "llama") throw new Error(`the model must be of the kind llama, not ${kind}`);
  const heads = fact("attention.head_count"), d = fact("embedding_length");
  return {
    d, heads, layers: fact("block_count"), ff: fact("feed_forward_length"),
    shared: fact("attention.head_count_kv") ?? heads, size: fact("rope.dimension_count") ?? d / heads,
    base: fact("rope.freq_base") ?? 1e4, eps: fact("attention.layer_norm_rms_epsilon"),
    room: Math.min(room, fact("context_length")),
  };
}

// The layout of the memory: the file, then vectors, attention scores, keys and values [layer kv_head token size], and
// logits.
function layOut({ d, ff, heads, shared, size, layers, room }, total, vocab) {
  let end = START + total;
  const floats = (count) => {
    const at = Math.ceil(end / 16) * 16;
    end = at + 4 * count;
    return at;
  };
  const wide = heads * size, cache = layers * shared * room * size;
  const at = {
    x: floats(d), h: floats(d), q: floats(wide), k: floats(shared * size), v: floats(shared * size),
    mixed: floats(wide), gate: floats(ff), up: floats(ff), scores: floats(room),
    packed: floats((PACKED / 4) * Math.max(d, wide, ff)),
    keys: floats(cache), values: floats(cache), logits: floats(vocab),
  };
  return { at, bytes: end };
}

// out = x / sqrt(mean(x^2) + eps) * weight
function norm(x, weight, eps, out) {
  let squares = 0;
  for (let n = 0; n < x.length; n++) squares += x[n] * x[n];
  const factor = 1 / Math.sqrt(squares / x.length + eps);
  for (let n = 0; n < x.length; n++) out[n] = x[n] * factor * weight[n];
}
function add(x, y) {
  for (let n = 0; n < x.length; n++) x[n] += y[n];
}
// Rotates each pair of adjacent entries by its own angle.
function turn(x, turns) {
  for (let n = 0; n < x.length; n += 2) {
    const pair = n % turns.length, cos = turns[pair], sin = turns[pair + 1], a = x[n], b = x[n + 1];
    x[n] = a * cos - b * sin;
    x[n + 1] = a * sin + b * cos;
  }
}
function softmax(z) {
  let most = -Infinity, sum = 0;
  for (let n = 0; n < z.length; n++) most = Math.max(most, z[n]);
  for (let n = 0; n < z.length; n++) sum += z[n] = Math.exp(z[n] - most);
  for (let n = 0; n < z.length; n++) z[n] /= sum;
}
// silu(gate) * up
function gated(gate, up) {
  for (let n = 0; n < gate.length; n++) gate[n] *= up[n] / (1 + Math.exp(-gate[n]));
}

// The model's matrices and gains by part, each with its place in memory. Shapes must match `sizes`.
function partsOf({ d, ff, heads, shared, size, layers }, tensors) {
  const part = (name, ...shape) => {
    const found = tensors.get(`${name}.weight`);
    if (String(found?.shape) !== String(shape)) {
      throw new Error(`${name}.weight must be [${shape}], not [${found?.shape ?? "missing"}]`);
    }
    if ((found.type === "F32") !== (shape.length === 1)) throw new Error(`${name}.weight must not be of ${found.type}`);
    return { type: found.type, at: START + found.at, rows: shape[0], columns: shape[1] };
  };
  const vocab = tensors.get("token_embd.weight")?.shape[0], wide = heads * size, few = shared * size;
  const embedding = part("token_embd", vocab, d);
  const blocks = Array.from({ length: layers }, (_, l) => {
    const own = (name, ...shape) => part(`blk.${l}.${name}`, ...shape);
    return {
      before: own("attn_norm", d), q: own("attn_q", wide, d), k: own("attn_k", few, d), v: own("attn_v", few, d),
      out: own("attn_output", d, wide), between: own("ffn_norm", d), gate: own("ffn_gate", ff, d),
      up: own("ffn_up", ff, d), down: own("ffn_down", d, ff),
    };
  });
  const head = tensors.has("output.weight") ? part("output", vocab, d) : embedding;
  return { vocab, embedding, blocks, final: part("output_norm", d), head };
}

export class Llama {
  // Takes readHead's result for a file of `total` bytes, and the compiled kernels; `room`: the number of tokens kept.
  constructor({ facts, tensors }, total, module, room = 1024) {
    this.sizes = sizesOf(facts, room);
    this.parts = partsOf(this.sizes, tensors);
    Object.assign(this, layOut(this.sizes, total, this.parts.vocab));
    this.kernel = kernels(module, this.bytes);
    this.memory = new Uint8Array(this.kernel.buffer);
    const { d, ff, heads, shared, size } = this.sizes;
    const views = { x: d, h: d, q: heads * size, k: shared * size, v: shared * size, gate: ff, up: ff };
    for (const [name, count] of Object.entries(views)) this[name] = this.floats(this.at[name], count);
    this.row = []; // the ids whose keys and values are kept
    this.reading = null; // what is being read, and the weights found so far
  }

  floats(at, count) {
    return new Float32Array(this.kernel.buffer, at, count);
  }
  // Stores a part of the file that begins at byte `at`.
  put(at, part) {
    this.memory.set(part, START + at);
  }
  pack(at, count) {
    this.kernel.pack(at, count, this.at.packed);
  }
  // Multiplies a matrix by the packed vector.
  product({ type, at, rows, columns }, out) {
    this.kernel[`product${type}`](at, rows, columns, this.at.packed, out);
  }
  normed({ at }) {
    norm(this.x, this.floats(at, this.sizes.d), this.sizes.eps, this.h);
    this.pack(this.at.h, this.sizes.d);
  }

  embed(id) {
    const { type, at } = this.parts.embedding, blocks = this.sizes.d / SIZE;
    for (let n = 0; n < blocks; n++) {
      UNPACK[type](this.memory, at + (id * blocks + n) * BLOCK[type], this.x, n * SIZE);
    }
  }

  // Each head attends to all tokens up to this one; neighbouring heads share keys and values. `seen` gets [head key].
  attend(layer, place, seen) {
    const { sizes: { heads, shared, size, room }, at, kernel } = this, count = place + 1;
    const start = (n) => 4 * (layer * shared + n) * room * size, weights = this.floats(at.scores, count);
    for (let n = 0; n < shared; n++) {
      const here = start(n) + 4 * place * size;
      this.floats(at.keys + here, size).set(this.k.subarray(n * size, (n + 1) * size));
      this.floats(at.values + here, size).set(this.v.subarray(n * size, (n + 1) * size));
    }
    for (let l = 0; l < heads; l++) {
      const from = start(Math.floor((l * shared) / heads)), here = 4 * l * size;
      kernel.scores(at.q + here, at.keys + from, count, size, 1 / Math.sqrt(size), at.scores);
      softmax(weights);
      kernel.mean(at.scores, at.values + from, count, size, at.mixed + here);
      seen?.push(weights.slice());
    }
  }

  // Passes one token through all blocks; `seen` maps each layer asked for to a list that receives [head key].
  step(id, place, seen) {
    const { sizes: { d, ff, heads, size, base }, at } = this;
    const turns = Float64Array.from({ length: size }, (_, n) => {
      const angle = place / base ** ((n - (n % 2)) / size);
      return n % 2 ? Math.sin(angle) : Math.cos(angle);
    });
    this.embed(id);
    this.parts.blocks.forEach((block, layer) => {
      this.normed(block.before);
      for (const name of ["q", "k", "v"]) this.product(block[name], at[name]);
      turn(this.q, turns);
      turn(this.k, turns);
      this.attend(layer, place, seen.get(layer));
      this.pack(at.mixed, heads * size);
      this.product(block.out, at.h);
      add(this.x, this.h);
      this.normed(block.between);
      for (const name of ["gate", "up"]) this.product(block[name], at[name]);
      gated(this.gate, this.up);
      this.pack(at.gate, ff);
      this.product(block.down, at.h);
      add(this.x, this.h);
    });
    this.row = [...this.row.slice(0, place), id];
  }

  // The logits of the token after the last one read.
  next() {
    this.normed(this.parts.final);
    this.product(this.parts.head, this.at.logits);
    return this.floats(this.at.logits, this.parts.vocab).slice();
  }

  // Where to start reading ids: a prefix shared with `row` is not read again, unless weights are asked for.
  begin(ids, layers) {
    const end = ids.findIndex((id, n) => id !== this.row[n]), same = end < 0 ? ids.length : end;
    const place = layers.length ? 0 : Math.min(same, ids.length - 1);
    return { place, seen: new Map(layers.map((layer) => [layer, []])) };
  }

  // Starts or continues reading ids for about `patience` milliseconds. Returns { done, read } and, when done, the
  // logits of the next token and the weights of each of `layers`: a list over tokens, each [head key].
  read({ ids, layers = [], patience = Infinity }) {
    const { room, layers: most } = this.sizes, stop = performance.now() + patience;
    if (!ids.length || ids.length > room) throw new Error(`a text must have 1 to ${room} tokens, not ${ids.length}`);
    const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= this.parts.vocab);
    if (wrong !== undefined) throw new Error(`ids must be 0 to ${this.parts.vocab - 1}, not ${wrong}`);
    if (layers.some((layer) => !(layer in this.parts.blocks))) {
      throw new Error(`layers must be 0 to ${most - 1}, not ${layers}`);
    }
    const key = `${ids};${layers}`;
    if (this.reading?.key !== key) this.reading = { key, ...this.begin(ids, layers) };
    const { seen } = this.reading;
    do {
      const place = this.reading.place++, found = new Map(layers.map((layer) => [layer, []]));
      this.step(ids[place], place, found);
      for (const [layer, heads] of found) seen.get(layer).push(heads);
    } while (this.reading.place < ids.length && performance.now() < stop);
    const told = { done: this.reading.place === ids.length, read: this.reading.place };
    if (!told.done) return told;
    this.reading = null;
    return { ...told, logits: this.next(), weights: [...seen.values()] };
  }
}

// A file's own tokenizer.
export function wordsOf(facts) {
  const fact = (name) => facts[`tokenizer.ggml.${name}`], tokens = fact("tokens"), kinds = fact("token_type");
  if (fact("model") !== "gpt2") throw new Error(`the tokenizer must be of the kind gpt2, not ${fact("model")}`);
  const special = tokens.filter((_, id) => kinds[id] !== 1);
  return bytePair(fact("merges"), special, { order: tokens, digits: fact("pre") === "smollm" });
}

// Opens a model from the first part of its file, which must hold the whole header, and stores that part.
export function openFile(part, total, module, room) {
  const head = readHead(part), model = new Llama(head, total, module, room);
  model.put(0, part);
  return { model, words: wordsOf(head.facts), start: head.facts["tokenizer.ggml.bos_token_id"],
    end: head.facts["tokenizer.ggml.eos_token_id"] };
}
