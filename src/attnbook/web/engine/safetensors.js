// Reads a safetensors file: 8 bytes with the length of the header, the header (JSON: the type, shape and place of each
// tensor), and the tensor data, row by row. An 8-bit matrix X comes with one scale per row, `X.scale`:
// X_ij = q_ij scale_i.

const SCALE = ".scale";
const READERS = {
  F32: (bytes) => new Float32Array(bytes),
  I8: (bytes) => new Int8Array(bytes),
  U8: (bytes) => new Uint8Array(bytes),
  U16: (bytes) => new Uint16Array(bytes),
};

// Reads an ArrayBuffer into { metadata, parameters }: strings and tensors by name, with scales already multiplied in.
export function read(buffer) {
  if (buffer.byteLength < 8) throw new Error(`no safetensors file: ${buffer.byteLength} bytes`);
  const length = Number(new DataView(buffer).getBigUint64(0, true)), start = 8 + length;
  if (start > buffer.byteLength) throw new Error(`no safetensors file: its header would take ${length} bytes`);
  const { __metadata__: metadata = {}, ...entries } = JSON.parse(new TextDecoder().decode(buffer.slice(8, start)));
  const all = new Map(Object.entries(entries).map(([name, { dtype, shape, data_offsets: [from, to] }]) => {
    if (!READERS[dtype]) throw new Error(`${name} holds ${dtype}, not one of ${Object.keys(READERS).join(", ")}`);
    if (start + to > buffer.byteLength) throw new Error(`${name} goes on after the end of the file`);
    return [name, { data: READERS[dtype](buffer.slice(start + from, start + to)), shape }];
  }));
  const scaled = ([name, tensor]) => [name, all.has(name + SCALE) ? multiply(tensor, all.get(name + SCALE)) : tensor];
  const named = [...all].filter(([name]) => !(name.endsWith(SCALE) && all.has(name.slice(0, -SCALE.length))));
  return { metadata, parameters: new Map(named.map(scaled)) };
}

function multiply({ data, shape }, scale) {
  const size = data.length / shape[0], product = new Float32Array(data.length);
  for (let row = 0, n = 0; row < shape[0]; row++) {
    for (const end = n + size; n < end; n++) product[n] = data[n] * scale.data[row];
  }
  return { data: product, shape };
}
