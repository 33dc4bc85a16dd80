// Reads the header of a GGUF file, llama.cpp's format: its facts by name, and the type, shape and place in the file of
// each tensor. The tensor data after the header are left as they are.

// Number types by code: the DataView method that reads one, and its size in bytes.
const NUMBERS = {
  0: ["getUint8", 1], 1: ["getInt8", 1], 2: ["getUint16", 2], 3: ["getInt16", 2], 4: ["getUint32", 4],
  5: ["getInt32", 4], 6: ["getFloat32", 4], 10: ["getBigUint64", 8], 11: ["getBigInt64", 8], 12: ["getFloat64", 8],
};
const MARK = 0x46554747; // "GGUF"
const TRUTH = 7, TEXT = 8, LIST = 9;
// The tensor types that the engine multiplies, by code: name, entries in a block, and bytes in a block.
const TYPES = { 0: ["F32", 1, 4], 3: ["Q4_1", 32, 20], 8: ["Q8_0", 32, 34] };

// Reads one item after another from the bytes of a file.
function reader(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), words = new TextDecoder();
  let at = 0;
  const next = (size) => {
    if (at + size > bytes.length) throw new Error(`no GGUF file: its head goes on after ${bytes.length} bytes`);
    at += size;
    return at - size;
  };
  const number = (code) => {
    if (!NUMBERS[code]) throw new Error(`a GGUF file has no number of type ${code}`);
    const [read, size] = NUMBERS[code];
    return Number(view[read](next(size), true));
  };
  const text = () => {
    const size = number(10), from = next(size);
    return words.decode(bytes.subarray(from, from + size));
  };
  function value(code) {
    if (code === TRUTH) return number(0) !== 0;
    if (code === TEXT) return text();
    if (code !== LIST) return number(code);
    const inner = number(4), size = number(10), list = [];
    while (list.length < size) list.push(value(inner));
    return list;
  }
  return { number, text, value, get at() { return at; } };
}

// Reads the first bytes of a file, at least its whole header, into { facts, tensors }.
export function readHead(bytes) {
  const file = reader(bytes), mark = file.number(4), version = file.number(4);
  if (mark !== MARK || version < 2 || version > 3) throw new Error("no GGUF file of version 2 or 3");
  const count = file.number(10), facts = {};
  for (let left = file.number(10); left > 0; left--) {
    const name = file.text();
    facts[name] = file.value(file.number(4));
  }
  const all = [];
  for (let n = 0; n < count; n++) {
    const name = file.text(), shape = [];
    for (let left = file.number(4); left > 0; left--) shape.unshift(file.number(10)); // the innermost size comes first
    const code = file.number(4), offset = file.number(10);
    if (!TYPES[code]) throw new Error(`${name} has type ${code}, not one of F32, Q4_1, Q8_0`);
    const [type, size, width] = TYPES[code], numbers = shape.reduce((a, b) => a * b, 1);
    all.push([name, { type, shape, offset, bytes: (numbers / size) * width }]);
  }
  const step = facts["general.alignment"] ?? 32, start = Math.ceil(file.at / step) * step;
  return { facts, tensors: new Map(all.map(([name, { offset, ...each }]) => [name, { ...each, at: start + offset }])) };
}
