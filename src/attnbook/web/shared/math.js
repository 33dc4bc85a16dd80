// Everything the widgets compute; no DOM, so Node tests can import this file as it is.

// x with `digits` decimals, like Python's f"{x:.3f}" but with no sign on zero: exact ties round to the even digit
// (toFixed rounds them up). A double is a tie exactly when x * 2^(digits + 1) is an odd integer.
export function format(x, digits = 3) {
  if (!Number.isFinite(x)) return String(x).replace("Infinity", "∞").toLowerCase();
  const size = Math.abs(x), up = size.toFixed(digits);
  const down = (size * 2 ** (digits + 1)) % 2 === 1 && Number(up.at(-1)) % 2 === 1;
  const text = down ? (size - 0.5 * 10 ** -digits).toFixed(digits) : up;
  return x < 0 && Number(text) !== 0 ? "-" + text : text;
}

// A whole number with commas. The built-in `toLocaleString` takes 10 to 25 ms on its first call.
export const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

// Writes a share of 1; a positive one never appears as 0.
export const share = (p, digits = 3) =>
  (p > 0 && p < 0.5 * 10 ** -digits ? `<${10 ** -digits}` : format(p, digits));

// The share that a full-length bar stands for, where `p` is the largest share among the bars.
export const fullBar = (p) => [0.1, 0.25, 0.5].find((end) => p <= end * 1.0001) ?? 1;

// x, limited to the range low..high.
export const within = (x, low, high) => Math.min(high, Math.max(low, x));

// softmax(logits / t). The largest logit is subtracted first, so nothing overflows; at t = 0 every other term is
// exp(-Infinity), the limit: the largest logits share everything (greedy). Where a logit stands for several equal ones,
// `counts` says how many; its share is that of all of them.
export function softmax(logits, t = 1, counts = []) {
  let max = -Infinity, sum = 0;
  for (const z of logits) max = Math.max(max, z);
  const p = Float64Array.from(logits, (z, i) => (counts[i] ?? 1) * (z === max ? 1 : Math.exp((z - max) / t)));
  for (const x of p) sum += x;
  return p.map((x) => x / sum);
}

// The entropy in nats; its exp is the perplexity, and dividing it by ln 2 gives bits.
export function entropy(p, counts = []) {
  let nats = 0;
  p.forEach((x, i) => { if (x > 0) nats -= x * Math.log(x / (counts[i] ?? 1)); });
  return Math.max(nats, 0);
}

// Indices of the n largest values, largest first; ties keep their order, since sort is stable.
export function largest(values, n) {
  return Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a]).slice(0, n);
}

// Temperature on a slider with equal steps in log t, from COLDEST to `hottest`, 20 unless given.
export const COLDEST = 0.05, HOTTEST = 20;
const breadth = (hottest) => Math.log(hottest / COLDEST);
export const toSlider = (t, hottest = HOTTEST) => within(Math.log(t / COLDEST) / breadth(hottest), 0, 1);
export const fromSlider = (x, hottest = HOTTEST) => Number((COLDEST * Math.exp(breadth(hottest) * x)).toPrecision(3));

// The index, among 256 colours, of a level's colour when the deepest stands for the level `most`.
export const shade = (level, most) => Math.floor((256 * level) / (most + 1));

// Binary traits arrive as a DataView: weights in 16 bits (0..65535 for 0..1), logits in 32 or 64.
export function unpackWeights(view) {
  const levels = new Uint16Array((view?.byteLength ?? 0) / 2);
  for (let i = 0; i < levels.length; i++) levels[i] = view.getUint16(2 * i, true);
  return levels;
}
export function unpackLogits(view, count) {
  const short = view.byteLength === 4 * count;
  const read = (i) => (short ? view.getFloat32(4 * i, true) : view.getFloat64(8 * i, true));
  return Float64Array.from({ length: count }, (_, i) => read(i));
}
export function packLogits(values) {
  const view = new DataView(new ArrayBuffer(8 * values.length));
  values.forEach((z, i) => view.setFloat64(8 * i, z, true));
  return view;
}

// Makes spaces at the ends, tabs and line breaks visible to the reader.
export function visible(token) {
  if (token === "") return "∅";
  return token.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ +| +$/g, (s) => "␣".repeat(s.length));
}

// 256 colours for weights 0..1, evenly spaced in perceived lightness (OKLCH, blue hues): from the page's colour to the
// ink's, so white to deep blue on a light page and near-black to pale blue on a dark one.
export function ramp(dark) {
  return Array.from({ length: 256 }, (_, i) => {
    const w = i / 255, bump = Math.sin(Math.PI * w);
    return dark ? oklch(0.24 + 0.68 * w, 0.02 + 0.03 * w + 0.095 * bump, 255 - 25 * w)
      : oklch(1 - 0.66 * w, 0.135 * w + 0.05 * bump, 240 + 24 * w);
  });
}
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180), b = chroma * Math.sin((hue * Math.PI) / 180);
  const [l, m, s] = [[0.3963377774, 0.2158037573], [-0.1055613458, -0.0638541728], [-0.0894841775, -1.291485548]]
    .map(([x, y]) => (lightness + x * a + y * b) ** 3);
  return [[4.0767416621, -3.3077115913, 0.2309699292], [-1.2684380046, 2.6097574011, -0.3413193965],
    [-0.0041960863, -0.7034186147, 1.707614701]].map(([x, y, z]) => {
    const u = within(x * l + y * m + z * s, 0, 1);
    return Math.round(255 * (u <= 0.0031308 ? 12.92 * u : 1.055 * u ** (1 / 2.4) - 0.055));
  });
}
// Relative luminance and contrast as WCAG defines them; ink is black or white, whichever reads better.
export function luminance(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
export const contrast = (x, y) => {
  const [a, b] = [luminance(x), luminance(y)].sort((p, q) => q - p);
  return (a + 0.05) / (b + 0.05);
};
export const ink = (rgb) => (luminance(rgb) > 0.179 ? "#000" : "#fff");
export const css = (rgb) => `rgb(${rgb.join(" ")})`;

// A state in the URL: #w.learnt-map=query:3;index:0,1 and further widgets after "&"; a string follows a "~".
const part = (name) => `w.${name}=`;
const writeValue = (value) => (typeof value === "string" ? `~${encodeURIComponent(value)}` : value);
function readValue(text) {
  try {
    return text.startsWith("~") ? decodeURIComponent(text.slice(1)) : text ? Number(text) : NaN;
  } catch {
    return NaN; // cut in the middle of a character
  }
}
export function readLink(hash, name) {
  const mine = hash.replace(/^#/, "").split("&").find((p) => p.startsWith(part(name)));
  if (!mine) return null;
  const state = {};
  for (const field of mine.slice(part(name).length).split(";")) {
    const [trait, written] = field.split(":"), values = written?.split(",").map(readValue);
    if (values?.every((value) => typeof value === "string" || Number.isFinite(value))) state[trait] = values;
  }
  return state;
}
// Our part comes first, since the page scrolls to the first one; the parts of other widgets stay.
export function writeLink(hash, name, state) {
  const written = Object.entries(state).map(([trait, values]) => `${trait}:${values.map(writeValue).join(",")}`);
  const mine = part(name) + written.join(";");
  const others = hash.replace(/^#/, "").split("&").filter((p) => p.startsWith("w.") && !p.startsWith(part(name)));
  return "#" + [mine, ...others].join("&");
}
// Whether the page scrolls here: our part is the first in the URL.
export const linkLeads = (hash, name) => hash.startsWith("#" + part(name));
