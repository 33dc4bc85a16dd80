// Bundles what pages run into src/attnbook/web/bundles, so that an install needs no Node: `make widgets`.
// With a folder as argument it writes there instead.
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import esbuild from "esbuild";

const WEB = join(import.meta.dirname, "../src/attnbook/web");
const OUT = process.argv[2] ?? join(WEB, "bundles");
const OPTIONS = {
  bundle: true, write: false, charset: "utf8", legalComments: "none", logLevel: "warning",
  minifyWhitespace: true, minifySyntax: true, // names stay, so that a stored widget can be read
  target: ["chrome111", "firefox113", "safari16.2"], // as in eslint.config.mjs
};

async function built(contents, loader, more = {}) {
  const stdin = { contents, loader, resolveDir: WEB };
  return (await esbuild.build({ ...OPTIONS, ...more, stdin })).outputFiles[0].text;
}
const script = (path) => built(`import "${path}";`, "js", { format: "iife" });

// `import TEXT from "./worker.js" with { type: "text" }`: the worker as one classic script, which a page opened as
// a file may start. What `left` has stays out: of it there is what is given there.
const workers = (left) => ({
  name: "workers",
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, async ({ path, with: { type } }) => {
      const loader = type ?? "js";
      if (path in left) return { contents: left[path], loader };
      return type === "text" ? { contents: await script(path), loader } : undefined;
    });
  },
});
// What runs a model: the worker, and what runs in the page itself.
const ENGINES = { [join(WEB, "engine/worker.js")]: "", [join(WEB, "engine/translator.js")]: "export let openTranslator;" };
const widget = (file, left = {}) =>
  built(`export { default } from "./${file}";`, "js", { format: "esm", plugins: [workers(left)] });

// A drawing in a file of its own knows no page's theme, only the system's; Colab says its own in its own way.
async function still() {
  const dark = ["colours", "chart"].map((name) => /(?<=^html\[data-theme="dark"\].*?\{).*?(?=\})/ms
    .exec(readFileSync(`${WEB}/shared/${name}.css`, "utf8"))[0]).join("");
  return built(`@import "./shared/colours.css"; @import "./shared/picture.css"; @import "./shared/chart.css";
    @media (prefers-color-scheme: dark) { svg:root { ${dark} } } html[theme="dark"] .draw-still { ${dark} }`, "css");
}

const bundles = { "still.css": still() };
for (const file of globSync("*/widget.js", { cwd: WEB })) {
  const folder = dirname(file), name = folder.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
  bundles[`widgets/${name}.js`] = widget(file);
  // A notebook stores no model, nor what runs it: a kernel that sends the weights brings both along.
  bundles[`widgets/${name}.stored.js`] = widget(file, ENGINES);
  bundles[`widgets/${name}.css`] = built(`@import "./${folder}/widget.css";`, "css");
}
for (const name of ["static-widgets", "bertviz-views"]) bundles[`site/${name}.js`] = script(`./site/${name}.js`);

const texts = Object.fromEntries(await Promise.all(
  Object.entries(bundles).map(async ([name, text]) => [name, await text])));
rmSync(OUT, { recursive: true, force: true });
for (const [name, text] of Object.entries(texts)) {
  if (name.endsWith(".stored.js") && text === texts[name.replace(".stored", "")]) continue;
  mkdirSync(dirname(join(OUT, name)), { recursive: true });
  writeFileSync(join(OUT, name), text);
}
