// Matrix products, where a Transformer spends its time.
import { room } from "./tape.js";

// out_ij += sum_t a_it b_tj. out [rows columns] starts at index `o` of its array, b [inner columns] at `from`, and a_it
// is at index `first + i down + t along` of a, so a may be stored as a matrix or as its transpose. Computes two rows by
// four columns at a time: eight sums that a processor keeps in registers.
export function addProduct([out, o], [a, first, down, along], [b, from], rows, inner, columns) {
  const [wide, even] = [columns - (columns % 4), rows - (rows % 2)];
  for (let i = 0; i < even; i += 2) {
    for (let j = 0; j < wide; j += 4) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      for (let t = 0, p = first + i * down, q = from + j; t < inner; t++, p += along, q += columns) {
        const x = a[p], y = a[p + down], b0 = b[q], b1 = b[q + 1], b2 = b[q + 2], b3 = b[q + 3];
        s0 += x * b0; s1 += x * b1; s2 += x * b2; s3 += x * b3;
        t0 += y * b0; t1 += y * b1; t2 += y * b2; t3 += y * b3;
      }
      const at = o + i * columns + j, below = at + columns;
      out[at] += s0; out[at + 1] += s1; out[at + 2] += s2; out[at + 3] += s3;
      out[below] += t0; out[below + 1] += t1; out[below + 2] += t2; out[below + 3] += t3;
    }
  }
  for (let i = 0; i < rows; i++) {
    for (let j = i < even ? wide : 0; j < columns; j++) { // what is left over
      let sum = 0;
      for (let t = 0, p = first + i * down, q = from + j; t < inner; t++, p += along, q += columns) sum += a[p] * b[q];
      out[o + i * columns + j] += sum;
    }
  }
}

// The transpose [columns rows] of the matrix [rows columns] that starts at index `from`.
export function turned(data, from, rows, columns) {
  const out = room(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) out[j * rows + i] = data[from + i * columns + j];
  }
  return out;
}

// sum_n x[i + n] y[j + n], as four partial sums that a processor can add in parallel.
export function dot(x, i, y, j, size) {
  let a = 0, b = 0, c = 0, d = 0, n = 0;
  for (; n + 3 < size; n += 4) {
    a += x[i + n] * y[j + n];
    b += x[i + n + 1] * y[j + n + 1];
    c += x[i + n + 2] * y[j + n + 2];
    d += x[i + n + 3] * y[j + n + 3];
  }
  for (; n < size; n++) a += x[i + n] * y[j + n];
  return a + b + (c + d);
}
