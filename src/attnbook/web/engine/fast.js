// Moves a model's matrices into the memory of the compiled kernels, which multiply four floats at a time.
import { compiled, START } from "./plain.js";

// Gives each matrix W [rows columns] in `parameters`, tensors by name, a function `times` that returns W x in an array
// that the next product overwrites. A matrix whose row length is not a multiple of four gets none. If the browser has
// no SIMD, the page forbids compiled code, or memory is short, no matrix gets one and `linear` multiplies without it.
export function speedUp(parameters, module) {
  const matrices = [...parameters.values()].filter(({ shape }) => shape.length === 2 && shape[1] % 4 === 0);
  const widest = Math.max(0, ...matrices.flatMap(({ shape }) => shape));
  const vector = START, product = vector + 4 * widest, first = product + 4 * widest;
  let kernel;
  try {
    kernel = compiled(module, first + 4 * matrices.reduce((sum, { data }) => sum + data.length, 0));
  } catch {
    return;
  }
  const floats = (at, count) => new Float32Array(kernel.buffer, at, count);
  matrices.reduce((at, matrix) => {
    const { data, shape: [rows, columns] } = matrix, x = floats(vector, columns), out = floats(product, rows);
    matrix.data = floats(at, data.length);
    matrix.data.set(data);
    matrix.times = (given) => {
      x.set(given);
      kernel.scores(vector, at, rows, columns, 1, product); // the dot product of x with each row of W
      return out;
    };
    return at + 4 * data.length;
  }, first);
}
