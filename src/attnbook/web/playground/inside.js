// Inside the model of Playground: a small map of every head up to a place, what a head attends to there, the lengths of
// the vectors that a layer adds, and how surprising each token of the text was.
import { format, largest, ramp, share, visible } from "../shared/math.js";
import { fill } from "./view.js";
import { headMap, looked } from "./row.js";
import { h, isDark, token } from "../shared/ui.js";

const MOST = 40, SAID = 5; // most places in a small map; tokens that are named
const PARTS = ["the state that comes in", "attention adds", "the network adds"];

// Paints the weights of a map, one pixel each.
function paintMap(canvas, { size, map }, colours) {
  canvas.width = canvas.height = size;
  const image = new ImageData(size, size), pixels = new Uint32Array(image.data.buffer);
  pixels.forEach((_, n) => {
    const beyond = n % size > Math.floor(n / size);
    pixels[n] = beyond ? 0 : colours[Math.round(255 * map[n])];
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// A layer's heads as small maps, and a panel below for the open one. `press` receives the index of a head in the layer.
function makeLayer(layer, heads, press) {
  const maps = Array.from({ length: heads }, (_, k) => {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const pressed = { type: "button", className: "attn-head-map", onclick: () => press(k) };
    return { canvas, button: h("button", pressed, canvas, h("span", {}, `head ${k + 1}`)) };
  });
  const panel = h("div", { className: "attn-opened", hidden: true });
  const node = h("section", { className: "attn-layer", "aria-label": `Layer ${layer + 1}` },
    h("p", { className: "attn-legend" }, `Layer ${layer + 1}`),
    h("div", { className: "attn-maps-row" }, ...maps.map(({ button }) => button)), panel);
  return { maps, panel, node };
}

// The tokens from index `first` of `weights` on, filled by how much a head attends to them.
function seenWords(weights, first, name) {
  const most = Math.max(...weights);
  return Array.from(weights.subarray(first), (weight, n) => {
    const node = h("span", { className: "attn-seen" }, h("bdi", {}, name(first + n)));
    node.style.setProperty("--level", weight / most);
    return node;
  });
}

function lengthBars(lengths) {
  const longest = Math.max(...lengths);
  return h("ul", { className: "attn-lengths", role: "list" }, ...PARTS.map((what, n) => {
    const bar = h("i", { className: "attn-fill" });
    bar.style.width = `${(100 * lengths[n]) / longest}%`;
    return h("li", {}, h("span", {}, what), h("span", { className: "attn-track", "aria-hidden": "true" }, bar),
      h("b", {}, format(lengths[n], 1)));
  }));
}

// Fills a layer's panel for its head `head`; `weights` holds that head's weights at the place `at`.
function drawOpened(panel, weights, lengths, name, at, layer, head) {
  const start = at + 1 - weights.length, seen = (n) => name(start + n);
  const best = largest(weights, SAID).flatMap((n, i) =>
    [i ? " · " : "", token(seen(n)), " ", h("b", {}, format(weights[n]))]);
  panel.replaceChildren(
    h("p", {}, `Layer ${layer + 1}, head ${head + 1}: `, token(name(at)), " looks at ", ...best),
    h("p", { className: "attn-seens" }, ...seenWords(weights, Math.max(0, weights.length - 2 * MOST), seen)),
    h("p", { className: "attn-legend" }, `Lengths of vectors in layer ${layer + 1}`), lengthBars(lengths));
}

// `open` receives the index of a pressed head, counted through all layers.
export function makeInside(layers, heads, open) {
  const sections = Array.from({ length: layers }, (_, l) => makeLayer(l, heads, (k) => open(l * heads + k)));
  const lead = h("p", { className: "attn-note" }), node = h("div", {}, lead, ...sections.map((each) => each.node));
  let colours, dark; // of the page's theme; colours as pixels

  function readTheme() {
    if (dark === isDark(node) && colours) return;
    dark = isDark(node);
    colours = ramp(dark).map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  }

  // `at` is a place that was read; it predicts the next token.
  function draw(row, names, at, chosen) {
    const name = (n) => visible(names[row.ids[n]]);
    readTheme();
    lead.replaceChildren("Where ", token(name(at)),
      ", the place that predicts, and those before it look: a row a place, "
      + "a column what it looks at, this place at the bottom. Press a head.");
    sections.forEach(({ maps, panel }, l) => {
      maps.forEach(({ canvas, button }, k) => {
        const n = l * heads + k, [best] = largest(looked(row, at, n), 1);
        paintMap(canvas, headMap(row, at, n, MOST), colours);
        button.setAttribute("aria-pressed", n === chosen);
        const most = name(row.places[at].start + best);
        button.setAttribute("aria-label", `layer ${l + 1}, head ${k + 1}, looks most at ${most}`);
      });
      panel.hidden = Math.floor(chosen / heads) !== l;
      if (panel.hidden) return;
      const lengths = row.places[at].lengths.subarray(3 * l, 3 * l + 3);
      drawOpened(panel, looked(row, at, chosen), lengths, name, at, l, chosen % heads);
    });
  }
  return { node, draw };
}

// Every token of a text with its probability, its surprisal in bits, and the model's own guess at that place.
export function makePlaces() {
  const body = h("tbody"), mean = h("p", { className: "attn-readout" });
  const heads = ["token", "probability", "bits", "the model’s guess"].map((name) => h("th", { scope: "col" }, name));
  const table = h("table", {}, h("caption", { className: "attn-heard" }, "The model’s prediction at every place"),
    h("thead", {}, h("tr", {}, ...heads)), body);
  const box = h("div", { className: "attn-every", role: "region", tabIndex: 0, "aria-label": "Every place" }, table);
  const node = h("div", {}, h("p", { className: "attn-note" },
    "The darker a token of the text, the more it surprised the model: "
    + "bits = −log₂ of its probability. The first has nothing before it."), mean, box);

  function draw(all, names) {
    const told = ({ id, guess, p, chance, bits }) => [id, guess, share(p), share(chance), format(bits, 1)];
    fill(body, all, told, ({ id, guess, p, bits, chance }) => {
      const right = id === guess ? ["✓"] : [token(visible(names[guess]))];
      return h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, visible(names[id]))), h("td", {}, share(p)),
        h("td", {}, format(bits, 1)), h("td", {}, ...right, ` ${share(chance)}`));
    });
    const sum = all.reduce((total, { bits }) => total + bits, 0);
    const hits = all.filter(({ id, guess }) => id === guess).length;
    mean.replaceChildren(...(all.length ? ["Mean ", h("b", {}, `${format(sum / all.length, 2)} bits`),
      ` a token · ${hits} of ${all.length} guessed`] : ["One token alone: nothing was predicted yet."]));
  }
  return { node, draw };
}
