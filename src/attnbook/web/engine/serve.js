// The worker's side of client.js: calls arrive as messages and are answered under their number. `moved` returns the
// buffers of an answer that are transferred, not copied.
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
