// Combines two drawings of the same layout into one whose parts can be exchanged.

// Puts the parts of another drawing of the same layout beside those of this one. Returns a function that shows this
// or the other version of the parts called `name`.
export function pairParts(map, other) {
  const of = (node, name) => [...node.querySelectorAll(`[data-part="${name}"]`)];
  const pairs = new Map();
  return (name, exchanged) => {
    if (!pairs.has(name)) {
      const theirs = of(other, name);
      pairs.set(name, of(map, name).map((node, n) => (node.after(theirs[n]), [node, theirs[n]])));
    }
    for (const [before, after] of pairs.get(name)) {
      before.classList.toggle("attn-gone", exchanged);
      after.classList.toggle("attn-gone", !exchanged);
      after.classList.add("attn-new");
    }
  };
}
