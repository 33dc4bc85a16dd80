// node --test tests/widgets_math.test.mjs: the widgets' mathematics, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as masked from "../src/attnbook/web/masked_words/masked.js";
import * as math from "../src/attnbook/web/shared/math.js";
import * as positions from "../src/attnbook/web/shared/positions.js";
import { pause, pieces } from "../src/attnbook/web/drawing/captions.js";
import { unpaired } from "../src/attnbook/web/ablation_map/translations.js";
import * as surfaces from "../src/attnbook/web/loss_surface/surfaces.js";

const close = (got, want, slack = 1e-12) => {
  assert.equal(got.length, want.length);
  got.forEach((x, i) => assert.ok(Math.abs(x - want[i]) <= slack, `${i}: ${x} is not ${want[i]}`));
};

test("format writes what Python's f-string writes", () => {
  const cases = [ // x, digits, f"{x:z.{digits}f}" by Python
    [0.125, 2, "0.12"], [0.375, 2, "0.38"], [0.0005, 3, "0.001"], [0.0015, 3, "0.002"], [2.5, 0, "2"], [3.5, 0, "4"],
    [1.005, 2, "1.00"], [0.107145, 2, "0.11"], [1.625, 2, "1.62"], [-1.625, 2, "-1.62"], [-0.0001, 3, "0.000"],
    [-0.5, 0, "0"], [999.9995, 3, "1000.000"], [1e15 + 0.5, 0, "1000000000000000"], [1, 3, "1.000"],
  ];
  for (const [x, digits, want] of cases) assert.equal(math.format(x, digits), want, `${x} to ${digits}`);
  assert.equal(math.format(-Infinity), "-∞");
  assert.equal(math.format(NaN), "nan");
});

test("grouped writes whole numbers as an English page does", () => {
  for (const n of [0, 7, 999, 1000, 12345, 999999, 1234567, -1000, -123]) {
    assert.equal(math.grouped(n), n.toLocaleString("en"));
  }
});

test("within keeps what lies between, and gives the nearer end for the rest", () => {
  assert.deepEqual([-3, -1, 0.25, 2, 7].map((x) => math.within(x, -1, 2)), [-1, -1, 0.25, 2, 2]);
});

test("softmax equals numpy's on the worked example", () => {
  const scores = [13, 24, 20, 12].map((score) => score / 8);
  close(math.softmax(scores), [0.12141154638084885, 0.48019198098468735, 0.29125115901535875, 0.10714531361910505]);
  close(math.softmax(scores, 0.5), [0.04314801842458307, 0.674948568747922, 0.24829970229045034, 0.03360371053704471]);
});

test("softmax sums to 1, is a softmax of z / t, and does not care about a shift", () => {
  const logits = [-3, 0.5, 2, 2.25, 7];
  for (const t of [0.05, 0.7, 1, 20]) {
    const p = math.softmax(logits, t), scale = logits.map((z) => Math.exp(z / t));
    const total = scale.reduce((a, b) => a + b);
    close(p, scale.map((x) => x / total), 1e-12);
    close(p, math.softmax(logits.map((z) => z + 1000), t), 1e-9);
  }
});

test("towards 0 the largest takes all, without overflow; ties share", () => {
  for (const t of [0, 5e-324, 1e-300, 1e-6]) {
    assert.deepEqual([...math.softmax([1, 3, 2], t)], [0, 1, 0]);
    assert.deepEqual([...math.softmax([3, 3, -1e308], t)], [0.5, 0.5, 0]);
  }
  assert.deepEqual([...math.softmax([1e6, 0, -Infinity], 1)], [1, 0, 0]);
  close(math.softmax([1, 2, 3], 1e12), [1 / 3, 1 / 3, 1 / 3], 1e-9);
});

test("entropy and perplexity at their ends", () => {
  assert.equal(math.entropy([0, 1, 0]), 0);
  for (const n of [1, 2, 7, 1000]) {
    const nats = math.entropy(math.softmax(Array(n).fill(0.3)));
    assert.ok(Math.abs(Math.exp(nats) - n) < 1e-9 * n);
  }
  assert.ok(Math.abs(math.entropy([0.5, 0.25, 0.25]) / Math.LN2 - 1.5) < 1e-12);
});

test("largest gives positions, largest first, ties in order", () => {
  assert.deepEqual(math.largest([1, 5, 5, -Infinity, 9], 4), [4, 1, 2, 0]);
  assert.deepEqual(math.largest([2], 10), [0]);
});

test("the slider is logarithmic from 0.05 to 20 and comes back to the same temperature", () => {
  assert.equal(math.toSlider(0.05), 0);
  assert.equal(math.toSlider(20), 1);
  assert.ok(Math.abs(math.toSlider(1) - 0.5) < 1e-12);
  assert.deepEqual([0, 1e-9, 500].map((t) => math.toSlider(t)), [0, 0, 1]);
  assert.deepEqual([0, 0.5, 1].map((x) => math.fromSlider(x)), [0.05, 1, 20]);
  assert.deepEqual([0, 0.5, 1].map((x) => math.fromSlider(x, 80)), [0.05, 2, 80]);
  assert.deepEqual([0.05, 2, 80, 99].map((t) => math.toSlider(t, 80)), [0, 0.5, 1, 1]);
  for (let x = 0; x <= 1; x += 0.01) assert.ok(Math.abs(math.toSlider(math.fromSlider(x)) - x) < 0.002);
});

test("binary traits: 16-bit weights; logits in 32 or 64 bits", () => {
  const bytes = new DataView(Uint8Array.of(9, 9, 0, 0, 255, 255, 0, 128).buffer, 2); // not at the buffer's start
  assert.deepEqual([...math.unpackWeights(bytes)], [0, 65535, 32768]);
  assert.deepEqual([...math.unpackWeights(null)], []);
  const logits = [0.1, -2.5, -Infinity];
  assert.deepEqual([...math.unpackLogits(math.packLogits(logits), 3)], logits);
  assert.deepEqual([...math.unpackLogits(new DataView(Float32Array.of(0.5, -3, 4).buffer), 3)], [0.5, -3, 4]);
});

test("what cannot be seen is made visible", () => {
  assert.equal(math.visible(""), "∅");
  assert.equal(math.visible(" the"), "␣the");
  assert.equal(math.visible("  "), "␣␣");
  assert.equal(math.visible("a b\n\t"), "a b↵⇥");
  assert.equal(math.visible("<b>&amp;"), "<b>&amp;");
});

test("colours run evenly in lightness, and text on each is readable", () => {
  for (const dark of [false, true]) {
    const colours = math.ramp(dark);
    assert.equal(colours.length, 256);
    const shades = colours.map(math.luminance), sign = dark ? 1 : -1;
    for (let i = 1; i < 256; i++) assert.ok(sign * (shades[i] - shades[i - 1]) > -1e-3, `${dark} ${i}`);
    for (const colour of colours) {
      const on = math.ink(colour) === "#000" ? [0, 0, 0] : [255, 255, 255];
      assert.ok(math.contrast(colour, on) >= 4.5, String(colour));
    }
  }
  assert.deepEqual(math.ramp(false)[0], [255, 255, 255]);
  assert.deepEqual(math.oklch(1, 0, 0), [255, 255, 255]);
  close(math.oklch(0.627955, 0.257683, 29.2339), [255, 0, 0], 1); // CSS Color 4: oklch of red
  close(math.oklch(0.452014, 0.313214, 264.052), [0, 0, 255], 1);
});

test("shades run from none to the largest, whatever that is", () => {
  for (let level = 0; level < 65536; level += 17) assert.equal(math.shade(level, 65535), level >> 8);
  for (const most of [512, 5000, 65535]) {
    assert.deepEqual([0, most / 2, most].map((n) => math.shade(n, most)), [0, 127, 255]);
  }
  assert.equal(math.shade(0, 0), 0);
});

test("a link keeps one part for each widget", () => {
  const link = math.writeLink("", "map", { query: [3], index: [0, 1] });
  assert.equal(link, "#w.map=query:3;index:0,1");
  assert.deepEqual(math.readLink(link, "map"), { query: [3], index: [0, 1] });
  assert.equal(math.readLink(link, "ma"), null);
  assert.equal(math.readLink("#section-two", "map"), null);
  const both = math.writeLink(link, "bars", { temperature: [0.25] });
  assert.equal(both, "#w.bars=temperature:0.25&w.map=query:3;index:0,1");
  assert.deepEqual(math.readLink(both, "map"), { query: [3], index: [0, 1] });
  assert.equal(math.writeLink(both, "map", {}), "#w.map=&w.bars=temperature:0.25");
  assert.deepEqual(math.readLink("#w.map=", "map"), {});
  assert.equal(math.writeLink("#section", "map", { key: [-1] }), "#w.map=key:-1");
  assert.ok(math.linkLeads(both, "bars") && !math.linkLeads(both, "map"));
});

test("a link holds any text", () => {
  for (const text of ["We wash: our cats; 1,2 & ~3%?", "貓 Ünïcode #w.map=query:1", "", "~"]) {
    const link = math.writeLink("", "words", { text: [text], masks: [1, 4] });
    assert.ok(!/[ "<>#]/.test(link.slice(1)), link);
    assert.deepEqual(math.readLink(link, "words"), { text: [text], masks: [1, 4] });
  }
  assert.equal(math.writeLink("", "words", { text: ["a b"] }), "#w.words=text:~a%20b");
  assert.deepEqual(math.readLink("#w.words=text:~a%2;masks:1", "words"), { masks: [1] });
});

test("a broken link restores nothing it cannot read", () => {
  const broken = "#w.map=query:x;key:1e999;index;;:;index:1,y;temperature:2";
  assert.deepEqual(math.readLink(broken, "map"), { temperature: [2] });
});

test("position vectors equal numpy's", () => {
  const p = positions.sinusoidal(5, 6, 10000);
  close(p.subarray(18, 24), [0.1411200080598672, -0.9899924966004454, 0.13879810108005056, 0.990320699135675,
    0.006463259070189646, 0.9999791129228609]);
  close(positions.sinusoidal(4, 4, 100).subarray(8, 12),
    [0.9092974268256817, -0.4161468365471424, 0.19866933079506122, 0.9800665778412416]);
  close(positions.products(positions.sinusoidal(7, 6, 10000), 7, 2), [1.5795381044132932, 2.539222961115251, 3,
    2.539222961115251, 1.579538104413293, 1.00030731545819, 1.3291332225622778]);
});

test("waves turn in as many positions as numpy says, and come round then", () => {
  const cases = [
    [0, 64, 6.283185307179586], [8, 64, 62.83185307179586], [31, 64, 47117.24278016739], [255, 512, 60611.47716626105],
  ];
  for (const [m, size, want] of cases) {
    close([positions.wavelength(m, size, 10000) / want], [1]);
    close([positions.wavelength(m, size, 10000) * positions.speed(m, size, 10000)], [2 * Math.PI]);
  }
});

test("inner products of positions depend on the distance alone", () => {
  const n = 40, size = 12, p = positions.sinusoidal(n, size, 1000), first = positions.products(p, n, 0);
  for (let i = 0; i < n; i++) {
    close(positions.products(p, n, i), Array.from(first, (_, j) => first[Math.abs(j - i)]), 1e-12);
  }
  close([first[0]], [size / 2]);
});

test("the base's slider is logarithmic from 10 to a million and comes back", () => {
  assert.deepEqual([0, 0.2, 0.6, 1].map(positions.fromBaseSlider), [10, 100, 10000, 1e6]);
  assert.deepEqual([1, 10, 1e6, 1e9].map(positions.toBaseSlider), [0, 0, 1, 1]);
  for (let x = 0; x <= 1; x += 0.01) {
    assert.ok(Math.abs(positions.toBaseSlider(positions.fromBaseSlider(x)) - x) < 0.005);
  }
});

test("two signs, two colours that are seen on any page; nothing at zero", () => {
  const blue = positions.BLUE, orange = positions.ORANGE; // two vectors of three numbers: a row for each number
  assert.deepEqual([...positions.pixels([0, 1, -0.5, 0.2, -1, -0], 2)],
    [...blue, 0, ...blue, 51, ...blue, 255, ...orange, 255, ...orange, 128, ...blue, 0]);
  for (const page of [[253, 252, 249], [21, 24, 29]]) {
    for (const colour of [blue, orange]) assert.ok(math.contrast(colour, page) >= 3, String([colour, page]));
  }
  assert.ok(math.luminance(positions.ORANGE) > 1.5 * math.luminance(positions.BLUE)); // told apart in grey, too
});

test("a vector at its position equals numpy's", () => {
  close(positions.positioned([1.6, 0.3], 12, 0.2, "rotate"), [-1.382468899031338, 0.859522974219468]);
  close(positions.positioned([0.6, 1.2], 7, 0.2, "rotate"), [-1.0805593902460076, 0.7952304094733653]);
  close(positions.positioned([1.6, 0.3], 12, 0.2, "add"), [0.8626062844587546, 0.9754631805511509]);
});

test("scores at one distance: all alike when positions rotate, not when they are added", () => {
  const q = [1.5, 0.4], k = [-0.3, 1.1], last = 20, angle = Math.atan2(0.4, 1.5) - Math.atan2(1.1, -0.3);
  for (const theta of [0, 0.3, 1]) {
    const { low, high } = positions.spread(q, k, theta, "rotate", last);
    const want = Array.from(low, (_, n) => Math.hypot(...q) * Math.hypot(...k) * Math.cos(angle + (n - last) * theta));
    close(low, want);
    close(high, want);
  }
  const { low, high } = positions.spread(q, k, 0.3, "add", last), seen = [];
  for (let i = 5; i <= last; i++) {
    const [a, b] = [[q, i], [k, i - 5]].map(([v, at]) => [v[0] + Math.cos(0.3 * at), v[1] + Math.sin(0.3 * at)]);
    seen.push(a[0] * b[0] + a[1] * b[1]);
  }
  close([low[last + 5], high[last + 5]], [Math.min(...seen), Math.max(...seen)]);
  assert.ok(high[last] - low[last] > 1);
});

test("words without a partner, when as many as possible are paired in order", () => {
  const cases = [ // said, gold, the wrong of said and the missing of gold, by letters
    ["a b c", "a b c", "", ""], ["a b", "a b c", "", "c"], ["x a b", "a b", "x", ""],
    ["", "a b", "", "ab"], ["a b", "", "ab", ""], ["b a c d", "a b c d", "b", "b"],
    ["a a a", "a b", "aa", "b"], ["c b a x a", "a b c", "cxba", "bc"],
  ];
  for (const [said, gold, wrong, missing] of cases) {
    const [ours, theirs] = [said, gold].map((text) => text.split(" ").filter(Boolean));
    const flags = unpaired(ours, theirs), taken = (all, marks) => all.filter((_, n) => marks[n]).length;
    assert.deepEqual([flags.wrong.length, flags.missing.length], [ours.length, theirs.length]);
    const counts = [taken(ours, flags.wrong), taken(theirs, flags.missing)];
    assert.deepEqual(counts, [wrong.length, missing.length], `${said}|${gold}`);
    const pairs = [ours.filter((_, n) => !flags.wrong[n]), theirs.filter((_, n) => !flags.missing[n])];
    assert.deepEqual(pairs[0], pairs[1]);
  }
  const { wrong, missing } = unpaired(["two", "hundred", "and", "six"], ["two", "hundred", "six", "teen"]);
  assert.deepEqual([wrong, missing], [[false, false, true, false], [false, false, false, true]]);
});

test("losses arrive as numpy packed them, in 16-bit floats", () => {
  const cases = [ // bytes of numpy's "<f2", value
    [0x3c00, 1], [0xc000, -2], [0x7bff, 65504], [0x0400, 2 ** -14], [0x0001, 2 ** -24], [0x03ff, 1023 * 2 ** -24],
    [0, 0], [0x3555, 0.333251953125], [0x068e, 0.0001000165939331054688],
  ];
  const view = new DataView(new ArrayBuffer(2 * cases.length));
  cases.forEach(([bits], i) => view.setUint16(2 * i, bits, true));
  close(surfaces.unpackHalf(view), cases.map(([, want]) => want), 1e-18);
});

test("a point is seen where two rotations put it", () => {
  close(surfaces.projected(1, 0, 0.5, 0, 0), [1, 0, 0]);
  close(surfaces.projected(0, 1, 0.5, 0, 0), [0, 0, 1]); // behind the middle
  close(surfaces.projected(0, 0, 1, 0, 0), [0, 0.6, 0]); // upright
  close(surfaces.projected(0, 1, 1, 0, 90), [0, 1, -0.6]); // from above, and nearer
  close(surfaces.projected(1, 0, 0.5, 90, 0), [0, 0, 1]); // what was on the right is behind
  for (const [a, e] of [[20, 30], [-130, 75], [180, 0]]) { // lengths and angles stay
    const [p, q] = [[0.3, -0.8, 0.9], [-0.5, 0.1, 0.2]].map((point) => surfaces.projected(...point, a, e));
    const dot = p.reduce((sum, x, i) => sum + x * q[i], 0);
    close([dot], [0.3 * -0.5 - 0.8 * 0.1 + 1.44 * 0.4 * -0.3]);
  }
});

test("heights have one scale, from the least loss to the largest", () => {
  const linear = surfaces.scaleOf([1, 4, 100, 10], false), log = surfaces.scaleOf([1, 4, 100, 10], true);
  assert.deepEqual([linear.low, linear.high], [1, 100]);
  close([1, 10, 100].map(linear.height), [0, 1 / 11, 1]);
  close([1, 10, 100].map(log.height), [0, 0.5, 1]);
  close([2, 2].map(surfaces.scaleOf([2, 2], true).height), [0, 0]); // flat, and no NaN
});

test("turning goes all the way round", () => {
  assert.deepEqual([0, 179, 180, 185, -185, 540, -900].map(surfaces.around), [0, 179, -180, -175, 175, -180, -180]);
});

test("hidden words stay hidden when their neighbours change", () => {
  const before = ["we", "wash", "our", "cats", "."], masks = [0, 2, 4];
  const cases = [
    [["we", "wash", "all", "our", "cats", "."], [0, 3, 5]], // a word more
    [["we", "our", "cats", "."], [0, 1, 3]], // one less
    [["we", "clean", "our", "cats", "."], [0, 2, 4]], // another
    [["we", "wash", "their", "cats", "."], [0, 2, 4]], // the hidden one is another
    [["we", "wash", "all", "these", "cats", "."], [0, 5]], // it is gone
    [["dogs"], []], [[], []], [before, masks],
    [["we", "wash", "our", "our", "cats", "."], [0, 2, 5]], // of two alike the first
  ];
  for (const [after, want] of cases) assert.deepEqual(masked.stillHidden(masks, before, after), want, after.join(" "));
  assert.deepEqual(masked.stillHidden([0], [], ["we"]), [1]); // beyond the words stays beyond them
});

test("each hidden piece has its distribution, its name and its rank", () => {
  const tokens = ["a", "b", "c"], ids = new Map(tokens.map((name, id) => [name, id]));
  const logits = { data: Float32Array.from([0, 1, 2, 5, 0, 0, 0, 0, 1]), shape: [3, 3] };
  const all = masked.distributions({ row: ["x", "b", "a", "b"], places: [1, 2, 3], logits }, ids, 0.5);
  assert.deepEqual(all.map(({ place, hidden, name, rank }) => [place, hidden, name, rank]),
    [[1, "b", "b", 2], [2, "a", "a", 1], [3, "b", "b (2)", 2]]);
  close(all[0].p, math.softmax([0, 1, 2], 0.5));
  assert.equal(all[2].own, all[2].p[1]);
  const best = masked.likeliest(all[0].p, tokens, 2);
  assert.deepEqual(best.map(({ token }) => token), ["c", "b"]);
  assert.equal(best[0].p, all[0].p[2]);
});

test("the pieces of a cut word are answered as a word: joined, its chance their product", () => {
  assert.deepEqual(["a", "##a", "[MASK]", "["].map((token) => [masked.fits(token, 0), masked.fits(token, 1)]),
    [[true, false], [false, true], [false, false], [true, false]]);
  const first = [{ token: "a", p: 0.5 }, { token: "b", p: 0.25 }], next = [{ token: "##c", p: 0.5 }, { token: "##d", p: 0.375 }];
  const words = masked.joined([first, next], 3);
  assert.deepEqual(words, [{ token: "ac", p: 0.25 }, { token: "ad", p: 0.1875 }, { token: "bc", p: 0.125 }]);
  const place = (n, hidden, own) => ({ place: n, hidden, own, best: n === 2 ? next : first });
  const places = [place(1, "x", 0.5), place(2, "##y", 0.125), place(3, "a", 1), place(4, "x", 0.5), place(5, "##y", 1)];
  const cut = (...at) => ({ text: "xy", places: at });
  const sentence = [cut(1, 2), { text: "a", places: [3] }, { text: "seen", places: [7] }, cut(4, 5), { text: "late", places: [] }];
  const [one, whole, again] = masked.wholeWords(places, sentence, 3, ({ best }) => best);
  assert.deepEqual([one.name, one.hidden, one.own, one.pieces], ["xy", "xy", 0.0625, ["x", "##y"]]);
  assert.deepEqual(one.best, words);
  assert.equal(whole, places[2]); // a word of one piece stays what it is
  assert.equal(again.name, "xy (2)");
});

test("weights into a place and out of it, of all heads and of some", () => {
  const shape = [2, 3, 4, 4], data = Float32Array.from({ length: 96 }, (_, n) => n); // layer head query key
  const out = masked.looks({ data, shape }, 1, false), into = masked.looks({ data, shape }, 1, true);
  assert.deepEqual([out.length, out[0].length], [4, 6]);
  assert.equal(out[3][4], 4 * 16 + 1 * 4 + 3); // head 1 of layer 1, from place 1 to token 3
  assert.equal(into[3][4], 4 * 16 + 3 * 4 + 1);
  const on = (...some) => masked.chosen(shape, ...some).flatMap((yes, n) => (yes ? [n] : []));
  assert.deepEqual([on(-1, -1), on(1, -1), on(-1, 2), on(1, 0)], [[0, 1, 2, 3, 4, 5], [3, 4, 5], [2, 5], [3]]);
  assert.equal(masked.mean([1, 2, 3, 4, 5, 9], masked.chosen(shape, 1, -1)), 6);
});

test("ordinal numbers", () => {
  const known = "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th 1,003rd 1,013th".split(" ");
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003, 1013].map(masked.ordinal), known);
});

test("a caption falls into texts, marked words and the parts they stand for", () => {
  assert.deepEqual(pieces("[Two keys](keys) and [MASK] (0.5) meet [it](sum.2)."),
    ["", "Two keys", "keys", " and [MASK] (0.5) meet ", "it", "sum.2", "."]);
  assert.deepEqual(pieces("plain"), ["plain"]);
  assert.equal(pause("a short one"), 2400);
  assert.equal(pause("word ".repeat(20).trim()), 6600);
});
