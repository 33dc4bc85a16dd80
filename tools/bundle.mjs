// Bundles what pages run into src/attnbook/web/bundles, so that an install needs no Node: `make widgets`.
// With a folder as argument it writes there instead.
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { built, script, WEB, workers } from "./bundling.mjs";

const OUT = process.argv[2] ?? join(WEB, "bundles");

// What runs a model: the worker, and what runs in the page itself.
const ENGINES = {
  [join(WEB, "engine/worker.js")]: "", [join(WEB, "engine/language.js")]: "",
  [join(WEB, "engine/translator.js")]: "export let openTranslator;",
};
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
for (const name of ["static-widgets", "bertviz-views", "progress"]) bundles[`site/${name}.js`] = script(`./site/${name}.js`);

const texts = Object.fromEntries(await Promise.all(
  Object.entries(bundles).map(async ([name, text]) => [name, await text])));
rmSync(OUT, { recursive: true, force: true });
for (const [name, text] of Object.entries(texts)) {
  if (name.endsWith(".stored.js") && text === texts[name.replace(".stored", "")]) continue;
  mkdirSync(dirname(join(OUT, name)), { recursive: true });
  writeFileSync(join(OUT, name), text);
}
