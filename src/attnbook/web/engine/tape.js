// Tensors, and backpropagation from a loss to what it was computed from. A tensor is { data, shape }: a Float32Array,
// row by row, and its sizes; in the backward pass also `grad`, the gradient of the loss for each of its entries.

let tape = null; // the backward steps of the computation being recorded
let taken = null; // the arrays of the current pass, to be reused later
const spare = new Map(); // arrays of earlier passes, by size

// Returns `size` zeros, in memory of an earlier pass if there is any.
export function room(size) {
  const data = taken && spare.get(size)?.pop()?.fill(0) || new Float32Array(size);
  taken?.push(data);
  return data;
}

// The gradient of the loss for a recorded tensor. Each use of the tensor adds to it.
export const gradient = (x) => (x.grad ??= room(x.data.length));

// Returns a function's result and records its backward step, which is called with the result's gradient.
export function made(out, back) {
  tape?.push([out, back]);
  return out;
}

// Runs f and returns its result; the memory of all tensors made meanwhile is reused by the next pass.
export function pass(f) {
  if (taken) return f(); // inside another
  taken = [];
  try {
    return f();
  } finally {
    for (const data of taken) {
      if (!spare.has(data.length)) spare.set(data.length, []);
      spare.get(data.length).push(data);
    }
    taken = null;
  }
}

// Runs f, which returns the loss as a tensor with one entry, backpropagates from it and returns its value: every tensor
// that it depends on then has its gradient. Those of parameters, which outlive a pass, accumulate.
export function backward(f) {
  tape = [];
  try {
    const loss = f(), steps = tape;
    tape = null;
    gradient(loss)[0] = 1;
    for (const [out, back] of steps.reverse()) if (out.grad) back(out.grad);
    return loss.data[0];
  } finally {
    tape = null;
  }
}
