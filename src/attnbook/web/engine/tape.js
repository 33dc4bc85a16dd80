// Tensors, and the way back from a loss to what it was computed from. A tensor is { data, shape }: a Float32Array, row
// by row, and its sizes; on the way back also `grad`, how the loss changes with each of its numbers.

let tape = null; // the steps back of a pass that is being recorded
let taken = null; // the arrays of a pass whose room is used again
const spare = new Map(); // arrays of earlier passes, by their size

// So many zeros, in memory of an earlier pass if there is any.
export function room(size) {
  const data = taken && spare.get(size)?.pop()?.fill(0) || new Float32Array(size);
  taken?.push(data);
  return data;
}

// The gradient of a recorded tensor: how the loss changes with it. Each use adds to it.
export const gradient = (x) => (x.grad ??= room(x.data.length));

// What a function gives, with what it does on the way back: it is called with the tensor's gradient.
export function made(out, back) {
  tape?.push([out, back]);
  return out;
}

// Runs f and gives what f gives; all tensors that it makes lose their room to the next pass.
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

// The loss that f gives, a tensor of one number, after the way back from it: every tensor that it depends on has its
// gradient. Those of parameters, which outlive a pass, are added to what they have.
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
