// The kernels of kernels.ts in JavaScript, for browsers without SIMD, and the memory that either kind works in.
const SIZE = 32, Q4_1 = 20, Q8_0 = 34; // entries of a block; bytes of a block of each type
export const START = 2 ** 16; // the compiled kernels may keep their constants below it

// Decodes a 16-bit float: sign, 5 bits of exponent, 10 bits of fraction.
export function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

// Unpacks the block that begins at byte `at` into `out`, from index `to` on.
export const UNPACK = {
  Q4_1(bytes, at, out, to) {
    const d = half(bytes[at] | (bytes[at + 1] << 8)), m = half(bytes[at + 2] | (bytes[at + 3] << 8));
    for (let j = 0; j < SIZE / 2; j++) {
      const both = bytes[at + 4 + j];
      out[to + j] = d * (both & 15) + m;
      out[to + j + SIZE / 2] = d * (both >> 4) + m;
    }
  },
  Q8_0(bytes, at, out, to) {
    const d = half(bytes[at] | (bytes[at + 1] << 8));
    for (let j = 0; j < SIZE; j++) out[to + j] = d * ((bytes[at + 2 + j] << 24) >> 24);
  },
};
export const BLOCK = { Q4_1, Q8_0 };

export function plain(size) {
  const buffer = new ArrayBuffer(size), bytes = new Uint8Array(buffer), floats = new Float32Array(buffer);
  const table = Float32Array.from({ length: 2 ** 16 }, (_, bits) => half(bits));
  const scale = (at) => table[bytes[at] | (bytes[at + 1] << 8)];

  // Here a vector is only copied.
  const pack = (x, n, to) => floats.copyWithin(to / 4, x / 4, x / 4 + n);

  function productQ4_1(w, rows, n, x, out) {
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let at = x / 4; at < x / 4 + n; at += SIZE, w += Q4_1) {
        let dot = 0, whole = 0;
        for (let j = 0; j < SIZE / 2; j++) {
          const both = bytes[w + 4 + j], a = floats[at + j], b = floats[at + j + SIZE / 2];
          dot += (both & 15) * a + (both >> 4) * b;
          whole += a + b;
        }
        sum += scale(w) * dot + scale(w + 2) * whole;
      }
      floats[out / 4 + row] = sum;
    }
  }
  function productQ8_0(w, rows, n, x, out) {
    for (let row = 0; row < rows; row++) {
      let sum = 0;
      for (let at = x / 4; at < x / 4 + n; at += SIZE, w += Q8_0) {
        let dot = 0;
        for (let j = 0; j < SIZE; j++) dot += ((bytes[w + 2 + j] << 24) >> 24) * floats[at + j];
        sum += scale(w) * dot;
      }
      floats[out / 4 + row] = sum;
    }
  }

  function scores(q, keys, count, size, factor, out) {
    for (let i = 0, key = keys / 4; i < count; i++, key += size) {
      let sum = 0;
      for (let c = 0; c < size; c++) sum += floats[q / 4 + c] * floats[key + c];
      floats[out / 4 + i] = sum * factor;
    }
  }
  function mean(weights, values, count, size, out) {
    for (let c = 0; c < size; c++) {
      let sum = 0;
      for (let i = 0; i < count; i++) sum += floats[weights / 4 + i] * floats[values / 4 + i * size + c];
      floats[out / 4 + c] = sum;
    }
  }
  return { buffer, pack, productQ4_1, productQ8_0, scores, mean };
}

// The kernels of the WebAssembly `module`, with a memory of at least `size` bytes.
export function compiled(module, size) {
  const memory = new WebAssembly.Memory({ initial: Math.ceil(size / 2 ** 16) });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module), { env: { memory } });
  return { ...exports, buffer: memory.buffer };
}
// The same, or the kernels in JavaScript if the browser has no SIMD.
export const kernels = (module, size) =>
  (module && globalThis.WebAssembly?.validate(module) ? compiled(module, size) : plain(Math.ceil(size / 8) * 8));
