// ui.js on elements of an old browser, which know no property of ARIA: `node --test tests/ui.test.mjs`
import assert from "node:assert/strict";
import { test } from "node:test";
import { button, disable } from "../src/attnbook/web/shared/ui.js";

class Element extends EventTarget {
  attributes = new Map();
  className = "";
  type = "";
  setAttribute(name, value) { this.attributes.set(name, String(value)); }
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  append() {}
}
globalThis.document = { createElement: () => new Element() };

test("a button that can do nothing says so and takes no press", () => {
  let pressed = 0;
  const node = button("Next", () => pressed++), press = () => node.dispatchEvent(new Event("click"));
  press();
  for (const [is, said] of [[true, "true"], [undefined, "false"], [1, "true"], [false, "false"]]) {
    disable(node, is);
    assert.equal(node.getAttribute("aria-disabled"), said);
    press();
  }
  assert.equal(pressed, 3);
});
