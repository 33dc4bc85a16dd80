// Where a language model spends its time: products of quantised matrices with vectors, in WebAssembly with 128-bit SIMD
// (AssemblyScript: TypeScript with sized number types; a v128 holds 8 numbers of 16 bits or 4 of 32). Arguments are
// byte addresses and counts. `plain.js` has the same functions in JavaScript.
//
// A block stores 32 entries of a row. Q8_0: a scale d, and signed 8-bit integers q_0 .. q_31; an entry is d q. Q4_1: a
// scale d, an offset m, and 16 bytes, of which byte j holds q_j in its lower half and q_(j+16) in its upper one; an
// entry is d q + m. d and m are 16-bit floats. No block is ever unpacked to floats: the products q_j x_j are computed
// in integers, with x rounded to 16 bits, and only their sum is multiplied by d.

const SIZE = 32; // entries of a block
const Q4_1 = 20, Q8_0 = 34; // bytes of a block
const PACKED = 84; // bytes of 32 packed entries of a vector

// Converts the two 16-bit floats at `at` to 32 bits. The bits of exponent and fraction move to their places; the
// exponent, whose bias is 15 there and 127 here, is corrected by a factor of 2^112.
@inline
function halves(at: usize): v128 {
  const bits = i32x4.shl(i32x4.extend_low_i16x8_s(v128.load32_zero(at)), 13);
  return f32x4.mul(v128.and(bits, i32x4.splat(0x8fffffff)), f32x4.splat(5192296858534827628530496329220096.0));
}
@inline
function total(x: v128): f32 {
  return f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) + (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3));
}
// Every other one of 8 floats.
@inline
function evens(at: usize): v128 {
  return v128.shuffle<f32>(v128.load(at), v128.load(at, 16), 0, 2, 4, 6);
}
@inline
function odds(at: usize): v128 {
  return v128.shuffle<f32>(v128.load(at), v128.load(at, 16), 1, 3, 5, 7);
}
// The largest of four floats.
@inline
function largest(a: v128): f32 {
  return max(max(f32x4.extract_lane(a, 0), f32x4.extract_lane(a, 1)),
    max(f32x4.extract_lane(a, 2), f32x4.extract_lane(a, 3)));
}

// Packs 8 of 16 floats, every other one: as 16-bit integers at `to`, and their scale, the largest magnitude / 32767,
// at `scale`. Returns the sum of the values they stand for.
@inline
function eight(a: v128, b: v128, to: usize, scale: usize): f32 {
  const high = largest(f32x4.max(f32x4.abs(a), f32x4.abs(b))), by = f32x4.splat(high > 0 ? <f32>32767 / high : 0);
  const p = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(a, by)));
  const q = i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(b, by)));
  v128.store(to, i16x8.narrow_i32x4_s(p, q));
  store<f32>(scale, high / 32767);
  return total(f32x4.convert_i32x4_s(i32x4.add(p, q))) * (high / 32767);
}

// Packs a vector of n floats for the products below: for each 32, the 16-bit integers, a scale for each 8 of them, and
// the sum of the values they stand for. The order is x_0 x_2 .. x_14, x_1 x_3 .. x_15, x_16 x_18 .. and x_17 x_19 ..,
// so two bytes of a block that are read as one 16-bit number can be separated without a shuffle.
export function pack(x: usize, n: i32, to: usize): void {
  for (let end = x + (<usize>n << 2); x < end; to += PACKED) {
    let sum: f32 = 0;
    for (let half: usize = 0; half < 2; half++, x += 64) {
      const ints = to + 32 * half, scales = to + 64 + 8 * half;
      sum += eight(evens(x), evens(x + 32), ints, scales) + eight(odds(x), odds(x + 32), ints + 16, scales + 4);
    }
    store<f32>(to, sum, 80);
  }
}

// sum_j q_j x_j over 8 entries, as four partial sums.
@inline
function part(q: v128, x: usize, scale: usize): v128 {
  return f32x4.mul(f32x4.convert_i32x4_s(i32x4.dot_i16x8_s(q, v128.load(x))), v128.load32_splat(scale));
}
// The same for a block: q in four vectors, x as it was packed.
@inline
function whole(a: v128, b: v128, c: v128, d: v128, x: usize): v128 {
  return f32x4.add(f32x4.add(part(a, x, x + 64), part(b, x + 16, x + 68)),
    f32x4.add(part(c, x + 32, x + 72), part(d, x + 48, x + 76)));
}

// out = W x, with the blocks of W [rows n] from address `w` on, and x packed.
export function productQ4_1(w: usize, rows: i32, n: i32, x: usize, out: usize): void {
  const end = x + <usize>(n / SIZE) * PACKED, low = i16x8.splat(15);
  for (let row = 0; row < rows; row++, out += 4) {
    let sum = f32x4.splat(0), offsets = f32x4.splat(0);
    for (let at = x; at < end; at += PACKED, w += Q4_1) {
      const q = v128.load(w, 4); // eight pairs of bytes, each with four 4-bit numbers
      const dot = whole(v128.and(q, low), v128.and(i16x8.shr_u(q, 8), low), v128.and(i16x8.shr_u(q, 4), low),
        i16x8.shr_u(q, 12), at);
      const both = halves(w); // d and m
      sum = f32x4.add(sum, f32x4.mul(dot, v128.shuffle<f32>(both, both, 0, 0, 0, 0)));
      offsets = f32x4.add(offsets, f32x4.mul(both, v128.load32_splat(at, 80)));
    }
    store<f32>(out, total(sum) + f32x4.extract_lane(offsets, 1));
  }
}
export function productQ8_0(w: usize, rows: i32, n: i32, x: usize, out: usize): void {
  const end = x + <usize>(n / SIZE) * PACKED;
  for (let row = 0; row < rows; row++, out += 4) {
    let sum = f32x4.splat(0);
    for (let at = x; at < end; at += PACKED, w += Q8_0) {
      const q = v128.load(w, 2), r = v128.load(w, 18);
      const dot = whole(i16x8.shr_s(i16x8.shl(q, 8), 8), i16x8.shr_s(q, 8), i16x8.shr_s(i16x8.shl(r, 8), 8),
        i16x8.shr_s(r, 8), at);
      sum = f32x4.add(sum, f32x4.mul(dot, f32x4.splat(f32x4.extract_lane(halves(w), 0))));
    }
    store<f32>(out, total(sum));
  }
}

// The scores of `count` keys, q . k times `factor`; keys of `size` floats are stored one after another.
export function scores(q: usize, keys: usize, count: i32, size: i32, factor: f32, out: usize): void {
  const bytes = <usize>size << 2;
  for (let i = 0; i < count; i++, keys += bytes, out += 4) {
    let sum = f32x4.splat(0);
    for (let at: usize = 0; at < bytes; at += 16) {
      sum = f32x4.add(sum, f32x4.mul(v128.load(q + at), v128.load(keys + at)));
    }
    store<f32>(out, total(sum) * factor);
  }
}
// The weighted mean of `count` values: sum_i weight_i value_i.
export function mean(weights: usize, values: usize, count: i32, size: i32, out: usize): void {
  const bytes = <usize>size << 2;
  for (let at: usize = 0; at < bytes; at += 16) {
    let sum = f32x4.splat(0);
    for (let i = 0, from = values + at; i < count; i++, from += bytes) {
      sum = f32x4.add(sum, f32x4.mul(f32x4.splat(load<f32>(weights + (<usize>i << 2))), v128.load(from)));
    }
    v128.store(out + at, sum);
  }
}
