// A model's matrices in the memory of the compiled kernels, which multiply four numbers at a time.
import { compiled, compiles, START } from "./plain.js";

// Gives each matrix W [rows columns] of a model, tensors by their name, a function `times`: W x, in a list that the next
// product is written into. Where the browser has no SIMD, and where four numbers don't fit, there is none.
export function compile(parameters, module) {
  if (!compiles(module)) return;
  const matrices = [...parameters.values()].filter(({ shape }) => shape.length === 2 && shape[1] % 4 === 0);
  const widest = Math.max(0, ...matrices.flatMap(({ shape }) => shape));
  const vector = START, product = vector + 4 * widest, first = product + 4 * widest;
  const kernel = compiled(module, first + 4 * matrices.reduce((sum, { data }) => sum + data.length, 0));
  const floats = (at, count) => new Float32Array(kernel.buffer, at, count);
  matrices.reduce((at, matrix) => {
    const { data, shape: [rows, columns] } = matrix, x = floats(vector, columns), out = floats(product, rows);
    matrix.data = floats(at, data.length);
    matrix.data.set(data);
    matrix.times = (given) => {
      x.set(given);
      kernel.scores(vector, at, rows, columns, 1, product);
      return out;
    };
    return at + 4 * data.length;
  }, first);
}
