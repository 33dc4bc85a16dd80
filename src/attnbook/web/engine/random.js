// Random numbers, the same for the same seed: mulberry32, a counter whose bits are mixed.

// The n-th number of a seed, 0 <= x < 1; `attnbook.model.sampling.uniform` gives the formula.
export function uniform(seed, n) {
  const state = (seed + Math.imul(n + 1, 0x6d2b79f5)) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

// The numbers of a seed, one after another.
export function generator(seed) {
  let n = 0;
  const next = () => uniform(seed, n++);
  const whole = (size) => Math.floor(next() * size); // 0 .. size - 1
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return { uniform: next, whole, normal };
}

// FNV-1a: hashes a text to an integer 0 .. 2^32 - 1, to choose or compare texts by.
export function hash(text) {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}
