// What the site's scripts and styles may use: what the oldest browsers know that package.json names as `browserslist`
// and book/troubleshooting.md promises. Of ES2022 and of the Baseline of a year they know all, but what is named.
import css from "@eslint/css";
import baseline from "eslint-plugin-baseline-js";
import es from "eslint-plugin-es-x";
import { known, OLDEST, within, year } from "./tools/browsers.mjs";

const WEB = { preset: "auto" };
const LIST = "/^(map|filter|some|every|find|forEach|reduce|flatMap|take|drop|toArray)$/";
const rulesOf = (set) => Object.fromEntries(Object.entries(set.rules)
  .filter(([name]) => !name.startsWith("es-x/no-iterator-prototype"))); // it knows no type: see `syntax`
const syntax = (selector, message) => ({ selector, message });
const unless = (fine) => (fine ? "off" : "error");
// Of these two web-features says nothing of its own.
const STATIC_BLOCK = { chrome: "94", edge: "94", firefox: "93", safari: "16.4" };
const LOOKBEHIND = { chrome: "62", edge: "79", firefox: "78", safari: "16.4" };
// Of what became common later, what is taken as soon as the oldest browsers have it.
const LATER = { allowFunctions: { "color-mix": "color-mix" }, allowAtRules: { container: "container-queries" } };
const taken = (oldest) => Object.fromEntries(Object.entries(LATER).map(([option, ids]) =>
  [option, Object.keys(ids).filter((name) => known(ids[name], oldest))]));

export const rules = (oldest) => [
  {
    files: ["**/*.js"],
    plugins: { "es-x": es, baseline },
    settings: { "es-x": { aggressive: true } },
    rules: {
      ...rulesOf(es.configs["flat/restrict-to-es2022"]),
      "es-x/no-class-static-block": unless(within(STATIC_BLOCK, oldest)),
      "es-x/no-regexp-lookbehind-assertions": unless(within(LOOKBEHIND, oldest)),
      "es-x/no-array-prototype-findlast-findlastindex": unless(known("array-findlast", oldest)),
      "es-x/no-import-attributes": "off", // a bundle has none
      "es-x/no-json-modules": "off", // nor these
      "es-x/no-string-prototype-towellformed": "off", // asked for by `?.()`
      "es-x/no-uint8array-frombase64": "off", // asked for by `if`
      "baseline/use-baseline": ["error", {
        available: year(oldest), includeWebApis: WEB, includeJsBuiltins: WEB,
        ignoreFeatures: ["async-clipboard", "uint8array-base64-hex"], // asked for by `?.` and by `if`
      }],
      "max-lines-per-function": ["error", { max: 60 }], // a widget is made of functions that one can read
      "no-restricted-syntax": ["error",
        syntax("MemberExpression[property.name=/^aria[A-Z]/]", "Firefox 119 reflects ARIA: use the attribute."),
        syntax(`CallExpression > MemberExpression[property.name=${LIST}] > CallExpression.object[callee.object.name!="Object"]`
          + "[callee.property.name=/^(values|keys|entries|matchAll)$/]", "Only lists have it, iterators of 2025: [...it]."),
      ],
    },
  },
  {
    files: ["**/*.css"],
    plugins: { css },
    language: "css/css",
    rules: {
      "no-restricted-syntax": ["error", syntax("Rule Rule", "Chrome 120 knows nesting.")],
      "css/use-baseline": ["error", {
        available: year(oldest),
        ...taken(oldest),
        // Where these are unknown a page looks plainer, and all of it can be read and used.
        allowProperties: ["accent-color", "break-after", "container-type", "field-sizing", "hyphens", "mask", "mask-image",
          "outline", "print-color-adjust", "resize", "rx", "text-wrap"],
        allowSelectors: ["has"],
        allowPropertyValues: { "font-family": ["ui-monospace"] },
      }],
    },
  },
];

export default rules(OLDEST);
