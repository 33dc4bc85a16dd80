// A worker's side of client.js: calls come as messages and are answered under their number.
export function serve(calls) {
  globalThis.onmessage = ({ data: { number, name, given } }) => {
    try {
      globalThis.postMessage({ number, result: calls[name](given) });
    } catch (error) {
      globalThis.postMessage({ number, error: String(error?.message ?? error) });
    }
  };
}
