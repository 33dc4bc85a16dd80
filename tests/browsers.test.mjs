// node --test tests/browsers.test.mjs: the browsers that the book promises are those that its code needs.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { ESLint } from "eslint";
import { rules } from "../eslint.config.mjs";
import { known, OLDEST, older, within, year } from "../tools/browsers.mjs";

const ROOT = join(import.meta.dirname, "..");
const SHEETS = ["src/attnbook/web/*/*.css", "book/_static"];
const before = (version) => version.includes(".") ? version.replace(/\d+$/, (minor) => minor - 1) : `${version - 1}`;

async function found(files, oldest) {
  const linter = new ESLint({ cwd: ROOT, overrideConfigFile: true, overrideConfig: rules(oldest), allowInlineConfig: false });
  return (await linter.lintFiles(files)).flatMap(({ messages }) => messages.map(({ message }) => message));
}

test("versions are compared as numbers", () => {
  assert.deepEqual([["9", "16.2"], ["16", "16.2"], ["16.2", "16.2"], ["≤79", "111"]].map((pair) => older(...pair)),
    [true, true, true, true]);
  assert.deepEqual([["16.10", "16.2"], ["112", "111"]].map((pair) => older(...pair)), [false, false]);
});

test("a feature is known when each of the oldest browsers has it, on phones, too", () => {
  const support = { chrome: "100", edge: "100", firefox: "100", safari: "16", safari_ios: "16.2" };
  assert.ok(within(support));
  assert.ok(!within({ ...support, safari_ios: "16.3" }));
  const { firefox, ...others } = support;
  assert.ok(firefox && !within(others));
  assert.ok(known("color-mix") && !known("nesting") && year() === 2022);
  assert.throws(() => known("no-such-feature"), /web-features has no/);
});

for (const [browser, version] of Object.entries(OLDEST))
  test(`no older ${browser} than ${version} would do`, async () => {
    assert.deepEqual(await found(SHEETS, OLDEST), []);
    const needs = await found(SHEETS, { ...OLDEST, [browser]: before(version) });
    assert.ok(needs.some((message) => /color-mix/.test(message)), needs.join("\n"));
  });
