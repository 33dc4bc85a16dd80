// A worker's side of client.js: calls come as messages and are answered under their number. `moved` gives the buffers
// of an answer that are handed over, not copied.
export function serve(calls, moved = () => []) {
  globalThis.onmessage = ({ data: { number, name, given } }) => {
    try {
      const result = calls[name](given);
      globalThis.postMessage({ number, result }, moved(result));
    } catch (error) {
      globalThis.postMessage({ number, error: String(error?.message ?? error) });
    }
  };
}
