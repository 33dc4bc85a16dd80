// The engine's kernels, from their typed source to WebAssembly: the bytes of a module.
import { join } from "node:path";
import { readFileSync } from "node:fs";
import asc from "assemblyscript/asc";

const SOURCE = join(import.meta.dirname, "../src/attnbook/web/engine/kernels.ts");
const OPTIONS = ["--enable", "simd", "--runtime", "stub", "--optimize", "--noAssert", "--importMemory"];

export async function kernels() {
  let module;
  const { error, stderr } = await asc.main(["kernels.ts", ...OPTIONS, "--outFile", "kernels.wasm"], {
    readFile: (name) => (name === "kernels.ts" ? readFileSync(SOURCE, "utf8") : null),
    writeFile(name, contents) {
      if (name === "kernels.wasm") module = contents;
    },
  });
  if (error) throw new Error(`${error.message}\n${stderr}`);
  return module;
}
