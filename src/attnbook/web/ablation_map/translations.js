// A model's translation beside the gold one, and the words in which they differ.
import { h, token } from "../shared/ui.js";

// Flags the words of `output` and of `gold` that are left over when as many as possible are paired in order.
export function unpaired(output, gold) {
  const most = Array.from({ length: output.length + 1 }, () => new Array(gold.length + 1).fill(0));
  for (let i = output.length - 1; i >= 0; i--) {
    for (let j = gold.length - 1; j >= 0; j--) {
      most[i][j] = output[i] === gold[j] ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
    }
  }
  const wrong = output.map(() => true), missing = gold.map(() => true);
  for (let i = 0, j = 0; i < output.length && j < gold.length;) {
    if (output[i] === gold[j]) wrong[i++] = missing[j++] = false;
    else if (most[i + 1][j] >= most[i][j + 1]) i++;
    else j++;
  }
  return { wrong, missing };
}

// A list item for [source, output, gold], each a string of words.
export function translation([source, ...texts]) {
  const [output, gold] = texts.map((text) => text.split(/\s+/).filter(Boolean));
  const { wrong, missing } = unpaired(output, gold), right = ![...wrong, ...missing].includes(true);
  const line = (who, words) => h("p", {}, h("span", { className: "attn-who" }, who), ...words);
  return h("li", {}, h("p", { className: "attn-source" }, token(source)),
    line(right ? "✓ model, right:" : "✗ model:", sentence(output, wrong, "attn-wrong", "wrong")),
    line("gold:", sentence(gold, missing, "attn-missing", "missing")));
}

// Words separated by spaces; those with a flag get the class `look`, and screen readers say `aside` after them.
function sentence(words, flags, look, aside) {
  if (!words.length) return [" (nothing)"];
  const spoken = () => h("span", { className: "attn-heard" }, ` (${aside})`);
  const flagged = (word) => h("span", { className: look }, token(word), spoken());
  return words.flatMap((word, n) => [" ", flags[n] ? flagged(word) : token(word)]);
}
