// One file of many: how esbuild makes what a page runs.
import { join } from "node:path";
import esbuild from "esbuild";
import { OLDEST } from "./browsers.mjs";
import { kernels } from "./kernels.mjs";

export const WEB = join(import.meta.dirname, "../src/attnbook/web");
const OPTIONS = {
  bundle: true, write: false, charset: "utf8", legalComments: "none", logLevel: "warning",
  minifyWhitespace: true, minifySyntax: true, // names stay, so that a stored widget can be read
  target: Object.entries(OLDEST).map(([browser, version]) => browser + version),
};

export async function built(contents, loader, more = {}) {
  const stdin = { contents, loader, resolveDir: WEB };
  return (await esbuild.build({ ...OPTIONS, ...more, stdin })).outputFiles[0].text;
}
// `import KERNELS from "./kernels.ts" with { type: "binary" }`: compiled, as bytes.
const compiled = {
  name: "compiled",
  setup({ onLoad }) {
    onLoad({ filter: /kernels\.ts$/ }, async () => ({ contents: await kernels(), loader: "binary" }));
  },
};
export const script = (path) => built(`import "${path}";`, "js", { format: "iife", plugins: [compiled] });

// `import TEXT from "./worker.js" with { type: "text" }`: the worker as one classic script, which a page opened as
// a file may start. What `left` has stays out: of it there is what is given there.
export const workers = (left) => ({
  name: "workers",
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, async ({ path, with: { type } }) => {
      const loader = type ?? "js";
      if (path in left) return { contents: left[path], loader };
      return type === "text" ? { contents: await script(path), loader } : undefined;
    });
  },
});
