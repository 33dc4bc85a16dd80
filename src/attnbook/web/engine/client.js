// As `call`, for questions that come faster than answers: while one is answered only the newest waits. Every other
// question gets undefined, as does one that is answered when a newer one has come.
function onlyNewest(call) {
  let busy = false, next = null; // next: gives the question that waits its turn
  return async (name, given) => {
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
  };
}

// A worker of the page, and questions to it. `source` is the text of its script, since a worker can't be loaded by its
// address from a page that was opened as a file, nor from a notebook. One that died is started again by the next call.
export function start(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" })), waiting = new Map();
  let worker = begin(), first, last = 0; // first: repeats the call that a worker needs before others

  function begin() {
    const mine = new Worker(address);
    mine.onmessage = ({ data: { number, result, error } }) => {
      const asked = waiting.get(number); // undefined, if the answer comes after an error
      waiting.delete(number);
      if (error === undefined) asked?.done(result);
      else asked?.failed(new Error(error));
    };
    mine.onerror = (event) => {
      mine.terminate();
      worker = null;
      const broken = new Error(event.message || "the worker did not start");
      for (const { failed } of waiting.values()) failed(broken);
      waiting.clear();
    };
    return mine;
  }

  // One call of the worker: a promise of what it gives back. Buffers in `moved` are handed over, not copied.
  async function call(name, given, moved = []) {
    if (!worker) {
      worker = begin();
      if (first) await first();
    }
    return new Promise((done, failed) => {
      waiting.set(++last, { done, failed });
      worker.postMessage({ number: last, name, given }, moved);
    });
  }

  // The call that a worker needs before others: a new one gets it again. `make` gives its arguments.
  async function open(make) {
    first = null; // a new worker would load twice
    const told = await call(...make());
    first = () => call(...make());
    return told;
  }

  function stop() {
    worker?.terminate();
    URL.revokeObjectURL(address);
  }
  return { call, newest: onlyNewest(call), open, stop };
}
