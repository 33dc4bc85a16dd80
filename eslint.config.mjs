// What the site's scripts and styles may use: what the oldest browsers know that book/troubleshooting.md promises, which
// are Chrome and Edge 111, Firefox 113 and Safari 16.2. All of ES2022 and of Baseline 2022 is older, but what is named.
import css from "@eslint/css";
import baseline from "eslint-plugin-baseline-js";
import es from "eslint-plugin-es-x";

const WEB = { preset: "auto" };
const LIST = "/^(map|filter|some|every|find|forEach|reduce|flatMap|take|drop|toArray)$/";
const rulesOf = (set) => Object.fromEntries(Object.entries(set.rules)
  .filter(([name]) => !name.startsWith("es-x/no-iterator-prototype"))); // it knows no type: see `syntax`
const syntax = (selector, message) => ({ selector, message });

export default [
  {
    files: ["**/*.js"],
    plugins: { "es-x": es, baseline },
    settings: { "es-x": { aggressive: true } },
    rules: {
      ...rulesOf(es.configs["flat/restrict-to-es2022"]),
      "es-x/no-class-static-block": "error", // Safari 16.4
      "es-x/no-regexp-lookbehind-assertions": "error", // Safari 16.4
      "es-x/no-array-prototype-findlast-findlastindex": "off", // Chrome 97, Firefox 104, Safari 15.4
      "es-x/no-import-attributes": "off", // a bundle has none
      "es-x/no-json-modules": "off", // nor these
      "es-x/no-string-prototype-towellformed": "off", // asked for by `?.()`
      "es-x/no-uint8array-frombase64": "off", // asked for by `if`
      "baseline/use-baseline": ["error", {
        available: 2022, includeWebApis: WEB, includeJsBuiltins: WEB,
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
        available: 2022,
        allowFunctions: ["color-mix"], // Chrome 111, Firefox 113, Safari 16.2
        allowAtRules: ["container"], // Chrome 105, Firefox 110, Safari 16.0
        // Where these are unknown a page looks plainer, and all of it can be read and used.
        allowProperties: ["accent-color", "break-after", "container-type", "field-sizing", "hyphens", "mask", "mask-image",
          "outline", "print-color-adjust", "resize", "rx", "text-wrap"],
        allowSelectors: ["has"],
        allowPropertyValues: { "font-family": ["ui-monospace"] },
      }],
    },
  },
];
