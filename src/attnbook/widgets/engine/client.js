// A worker of the page, and questions to it. `source` is the text of its script, since a worker can't be loaded by its
// address from a page that was opened as a file, nor from a notebook.
export function start(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(address), waiting = new Map();
  let last = 0, busy = false, next = null, broken; // next: gives the question that waits its turn

  worker.onmessage = ({ data: { number, result, error } }) => {
    const { done, failed } = waiting.get(number);
    waiting.delete(number);
    error === undefined ? done(result) : failed(new Error(error));
  };
  worker.onerror = (event) => {
    broken = new Error(event.message || "the worker did not start");
    for (const { failed } of waiting.values()) failed(broken);
    waiting.clear();
  };

  // One call of the worker: a promise of what it gives back. Buffers in `moved` are handed over, not copied.
  function call(name, given, moved = []) {
    return new Promise((done, failed) => {
      if (broken) return failed(broken);
      waiting.set(++last, { done, failed });
      worker.postMessage({ number: last, name, given }, moved);
    });
  }

  // As `call`, for questions that come faster than answers: while one is answered only the newest waits. Who asked
  // another, or was answered when a newer one had come, gets undefined.
  async function newest(name, given) {
    next?.(false);
    if (busy && !(await new Promise((turn) => (next = turn)))) return undefined;
    busy = true;
    try {
      const result = await call(name, given);
      return next ? undefined : result;
    } finally {
      const turn = next;
      next = null;
      busy = turn !== null;
      turn?.(true);
    }
  }

  function stop() {
    worker.terminate();
    URL.revokeObjectURL(address);
  }
  return { call, newest, stop };
}
