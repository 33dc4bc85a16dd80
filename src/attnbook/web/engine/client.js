// Like `call`, for questions that come faster than answers: while one is being answered, only the newest one waits. Any
// question overtaken by a newer one gets undefined, even if its own answer has arrived.
function onlyNewest(call) {
  let busy = false, next = null; // next: starts the waiting question or drops it
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

// Starts a worker and returns the ways to ask it. `source` is the text of its script, since a worker cannot be loaded
// by URL from a page opened as a file, or from a notebook. If the worker dies, the next call starts a new one.
export function start(source) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" })), waiting = new Map();
  let worker = begin(), first, last = 0; // first: repeats the call that a worker needs before any other

  function begin() {
    const mine = new Worker(address);
    mine.onmessage = ({ data: { number, result, error } }) => {
      const asked = waiting.get(number); // undefined if the answer comes after an error
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

  // Calls the worker and returns a promise of its result. Buffers in `moved` are transferred, not copied.
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

  // Makes the call that a worker needs before any other; a new worker gets it again. `make` returns its arguments.
  async function open(make) {
    first = null; // or a new worker would load twice
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
