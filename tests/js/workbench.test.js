// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  CAUSE_TEXT, STACK_ORDER, barTop, blockHeight, countBelow, drawGutter, drawMap, drawTile, drawTimeline,
  editedRaw, layoutRows, lineStarts, mapLayout, markedPieces, placeFlags, rowAt, rowWindow, scaleTicks,
  textMap, timelineLayout, timelineRects, toRaw, toShown, turnAt, turnTicks, visibleText,
} from "../../codesmith_lab/widgets/workbench.js";
import { HOSTILE, sampleState } from "./sample.js";

/** A pen that writes down what it is told. */
function fakePen() {
  /** @type {any[]} */
  const calls = [];
  /** @type {any} */
  const pen = { calls, fillStyle: "", strokeStyle: "", lineWidth: 1, font: "", textAlign: "", textBaseline: "" };
  for (const name of ["fillRect", "beginPath", "moveTo", "lineTo", "stroke", "arc", "fill", "fillText"]) {
    pen[name] = (/** @type {any[]} */ ...args) => calls.push({ name, args, style: pen.fillStyle });
  }
  pen.measureText = (/** @type {string} */ text) => ({ width: text.length * 6 });
  return pen;
}

/** @param {any} pen @param {string} name */
const named = (pen, name) => pen.calls.filter((/** @type {any} */ call) => call.name === name);
const INK = { fg: "fg", muted: "muted", line: "line", lost: "lost", bg: "bg", font: "11px x" };
/** @type {Record<string, string>} */
const FILLS = Object.fromEntries(STACK_ORDER.map((cause) => [cause, cause]));
/** @param {number} seed */
function dice(seed) {
  let state = seed;
  return (/** @type {number} */ n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

test("unseen and reordering characters are spelled out, seen ones stay", () => {
  assert.equal(visibleText("a\u0000b\u001b[31m\u007f"), "a␀b␛[31m␡");
  assert.equal(visibleText("\u202eevil\u2066"), "‹U+202E›evil‹U+2066›");
  assert.equal(visibleText("\ud800x\u200b\ufeff"), "‹U+D800›x‹U+200B›‹U+FEFF›");
  assert.equal(visibleText("\u{e0041}"), "‹U+E0041›");
  assert.equal(visibleText("👩‍👩‍👧 שלום é <b>"), "👩‍👩‍👧 שלום é <b>");
  assert.equal(visibleText("abcdef", 3), "abc…");
  assert.equal(visibleText("ab👩", 3), "ab…");
  assert.doesNotMatch(visibleText(HOSTILE), /[\u0000-\u001f\u202e\u200b]/);
});

test("text with CR or CRLF keeps its bytes through an edit of the shown text", () => {
  const raw = "a\r\nb\nc\rd\r\n";
  const map = textMap(raw);
  assert.equal(map.shown, "a\nb\nc\nd\n");
  assert.equal(editedRaw(map, map.shown), raw);
  assert.equal(editedRaw(map, "a\nB\nc\nd\n"), "a\r\nB\nc\rd\r\n");
  assert.equal(editedRaw(map, "a\nb\nc\nd\n\nx"), "a\r\nb\nc\rd\r\n\r\nx");
  assert.equal(editedRaw(textMap("plain"), "new"), "new");
  assert.equal(editedRaw(textMap("a\rb"), "a\nb\nc"), "a\rb\rc");
});

test("random edits of mixed line ends change nothing outside the edited range", () => {
  const roll = dice(11);
  const bits = ["x", "yy", "\r\n", "\n", "\r", "é", "👩"];
  for (let round = 0; round < 400; round += 1) {
    const raw = Array.from({ length: roll(12) }, () => bits[roll(bits.length)]).join("");
    const map = textMap(raw);
    assert.equal(map.shown, raw.replace(/\r\n?/g, "\n"));
    for (let at = 0; at <= map.shown.length; at += 1) assert.equal(toShown(map, toRaw(map, at)), at);
    const from = roll(map.shown.length + 1);
    const to = from + roll(map.shown.length - from + 1);
    const value = map.shown.slice(0, from) + "Q\nZ" + map.shown.slice(to);
    const after = editedRaw(map, value);
    assert.equal(textMap(after).shown, value);
    assert.ok(after.startsWith(raw.slice(0, toRaw(map, from))), JSON.stringify([raw, after]));
    assert.ok(after.endsWith(raw.slice(toRaw(map, to))), JSON.stringify([raw, after]));
  }
});

test("lines and sorted search", () => {
  assert.deepEqual(lineStarts(""), [0]);
  assert.deepEqual(lineStarts("a\n\nb\n"), [0, 2, 3, 5]);
  assert.equal(countBelow([1, 3, 3, 7], 3), 1);
  assert.equal(countBelow([], 3), 0);
});

test("a line is cut at its marks, and the pieces are the line", () => {
  const text = "one two\nthree";
  assert.deepEqual(markedPieces(text, 0, 7, [[4, 7]]), [{ text: "one ", kind: "plain" }, { text: "two", kind: "mark" }]);
  assert.deepEqual(markedPieces(text, 8, 13, [[4, 10]]), [{ text: "th", kind: "mark" }, { text: "ree", kind: "plain" }]);
  assert.deepEqual(markedPieces(text, 0, 7, [[2, 2]]).map((piece) => piece.kind), ["plain", "edge", "plain"]);
  assert.deepEqual(markedPieces(text, 0, 7, [[7, 8]]).map((piece) => piece.kind), ["plain", "edge"]);
  assert.deepEqual(markedPieces(text, 8, 13, [[7, 8]]).map((piece) => piece.kind), ["plain"]);
  const roll = dice(5);
  for (let round = 0; round < 300; round += 1) {
    const cuts = Array.from({ length: 6 }, () => roll(14)).sort((a, b) => a - b);
    const marks = [[cuts[0], cuts[1]], [cuts[2], cuts[3]], [cuts[4], cuts[5]]].filter(([a], i) => i === 0 || a > cuts[2 * i - 1]);
    for (const [start, end] of [[0, 7], [8, 13]]) {
      const joined = markedPieces(text, start, end, marks).map((piece) => piece.text).join("");
      assert.equal(joined, text.slice(start, end));
    }
  }
});

test("block heights grow with tokens, ever more slowly, within bounds", () => {
  const heights = [0, 48, 700, 2000, 4000, 8000, 16000].map(blockHeight);
  for (let k = 1; k < heights.length; k += 1) assert.ok(heights[k] >= heights[k - 1]);
  assert.ok(heights[6] - heights[5] < 20 && heights[6] / heights[4] < 2);
  assert.equal(blockHeight(0), 27);
  assert.equal(blockHeight(1e12), 150);
  assert.equal(blockHeight(-5), 27);
});

test("rows follow one another; lines between blocks get a seam, a cut keeps clear of text", () => {
  const tokens = [3412, 961, 48, 702];
  const plain = layoutRows(tokens, 0, 4, null, null);
  for (let k = 1; k < 4; k += 1) assert.equal(plain.tops[k], plain.tops[k - 1] + plain.heights[k - 1]);
  assert.equal(plain.total, plain.tops[3] + plain.heights[3]);
  const lined = layoutRows(tokens, 0, 4, { block: 2, share: 0, text: "" }, 2);
  assert.equal(lined.total, plain.total + 40);
  assert.ok(lined.boundY !== null && lined.breakY !== null && lined.boundY < lined.breakY && lined.breakY < lined.tops[2]);
  for (const share of [0.01, 0.3, 0.6, 0.99]) {
    const cut = layoutRows(tokens, 0, 4, { block: 2, share, text: "" }, null);
    const line = /** @type {number} */ (cut.breakY) - cut.tops[2];
    assert.ok(line >= 10 && line <= cut.heights[2] - 10, `share ${share}: ${line}`);
    assert.ok(line - 8 >= cut.breakTextTop + 19 || line + 8 <= cut.breakTextTop, `share ${share}: text meets line`);
    assert.ok(cut.breakTextTop + 19 <= cut.heights[2]);
  }
  const last = layoutRows(tokens, 0, 4, { block: 3, share: 1, text: "" }, 4);
  assert.equal(last.total, plain.total + 40);
  assert.equal(layoutRows(tokens, 4, 4, null, null).total, 0);
  assert.equal(layoutRows(tokens, 0, 2, { block: 2, share: 0.5, text: "" }, 3).breakY, null);
});

test("rows are found by height, and a long list is built in a window", () => {
  const tokens = Array.from({ length: 5000 }, (_, k) => (k * 37) % 3000);
  const { tops, heights, total } = layoutRows(tokens, 0, 5000, null, null);
  for (const k of [0, 1, 77, 4999]) {
    assert.equal(rowAt(tops, tops[k]), k);
    assert.equal(rowAt(tops, tops[k] + heights[k] - 1), k);
  }
  assert.equal(rowAt(tops, -10), 0);
  assert.equal(rowAt(tops, total + 99), 4999);
  assert.equal(rowAt([], 5), -1);
  const middle = rowWindow(tops, 90000, 330);
  assert.ok(tops[middle.first] <= 90000 && tops[middle.last - 1] + heights[middle.last - 1] >= 90330);
  assert.ok(middle.last - middle.first < 60);
  assert.deepEqual(rowWindow(tops.slice(0, 200), 0, 330), { first: 0, last: 200 });
  assert.equal(rowWindow(tops, total, 330).last, 5000);
});

test("the timeline gives each turn a bar, finds it again, and thins out below a pixel", () => {
  const wide = timelineLayout(Array(40).fill(100), 1200, 164);
  assert.equal(wide.bars.length, 40);
  for (let turn = 0; turn < 40; turn += 1) {
    assert.equal(turnAt(wide, (wide.x0[turn] + wide.x1[turn]) / 2), turn);
    assert.ok(wide.x1[turn] > wide.x0[turn]);
  }
  assert.equal(turnAt(wide, -5), 0);
  assert.equal(turnAt(wide, 5000), 39);
  assert.equal(turnAt(timelineLayout([], 1200, 164), 10), -1);
  const dense = timelineLayout(Array.from({ length: 5000 }, (_, k) => (k === 2501 ? 9 : 1)), 700, 164);
  assert.ok(dense.bars.length <= 663);
  assert.ok(dense.bars.includes(2501), "the tallest turn of a pixel is the one drawn");
  assert.ok(timelineLayout([1, 2], 1200, 164).step <= 64);
});

test("the parts of a bar add up to its height, in stacking order", () => {
  const { timeline } = sampleState({ turns: 200 });
  const layout = timelineLayout(timeline.totals, 900, 164);
  const rects = timelineRects(layout, timeline.causes, timeline.tokens);
  const tall = new Map();
  for (const list of Object.values(rects)) {
    for (let k = 0; k < list.length; k += 4) tall.set(list[k], (tall.get(list[k]) ?? 0) + list[k + 3]);
  }
  for (const turn of layout.bars) assert.equal(tall.get(layout.x0[turn]), layout.base - barTop(layout, timeline.totals[turn]));
  assert.ok(Object.keys(rects).indexOf("hit") < Object.keys(rects).indexOf("repaid"));
});

test("scale, turn numbers and flags leave room", () => {
  assert.deepEqual(scaleTicks(27956), [10000, 20000]);
  assert.deepEqual(scaleTicks(3), []);
  for (const max of [10, 99, 1234, 5e6]) assert.ok(scaleTicks(max).length >= 1 && scaleTicks(max).length <= 3);
  assert.deepEqual(turnTicks(40, 29), [1, 5, 10, 15, 20, 25, 30, 35, 40]);
  assert.deepEqual(turnTicks(0, 29), []);
  assert.ok(turnTicks(1000, 1.1).length < 25);
  const places = placeFlags([{ x: 0, width: 50 }, { x: 20, width: 50 }, { x: 30, width: 50 }, { x: 990, width: 50 }], 1000);
  assert.deepEqual(places.map((place) => place.row), [0, 1, -1, 0]);
  assert.equal(places[3].x, 950);
});

test("the map is true to scale and knows where blocks begin", () => {
  const { blocks } = sampleState();
  const map = mapLayout(blocks, 700);
  const total = blocks.tokens.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
  assert.ok(Math.abs(map.scale - (700 - 8) / total) < 1e-9);
  const end = map.runs[map.runs.length - 1];
  assert.ok(Math.abs(end.y + end.height - 700) <= 1);
  for (let k = 1; k < map.runs.length; k += 1) assert.ok(map.runs[k].y >= map.runs[k - 1].y + map.runs[k - 1].height);
  assert.equal(rowAt(map.tops, map.tops[40] + 0.01), 40);
  assert.equal(mapLayout({ tokens: [], spans: [], zones: [] }, 700).runs.length, 0);
  const many = sampleState({ messages: 4990 });
  assert.ok(mapLayout(many.blocks, 700).runs.length < 20, "equal neighbours are one run");
});

test("every cause has its own kind of mark", () => {
  const prints = STACK_ORDER.map((cause) => {
    const pen = fakePen();
    drawTile(pen, cause, "one", "two", 8);
    assert.deepEqual(pen.calls[0], { name: "fillRect", args: [0, 0, 8, 8], style: "one" });
    return pen.calls.slice(1).map((/** @type {any} */ call) => `${call.name} ${call.args}`).join();
  });
  const plain = STACK_ORDER.filter((_, k) => prints[k] === "");
  assert.deepEqual(plain, ["hit", "new"]);
  assert.equal(new Set(prints).size, 5);
  assert.deepEqual(Object.keys(CAUSE_TEXT).sort(), [...STACK_ORDER].sort());
});

test("the timeline draws bars by cause, turn numbers, and flags as harmless text", () => {
  const { timeline } = sampleState({ hostile: true });
  const pen = fakePen();
  const layout = timelineLayout(timeline.totals, 1200, 164);
  drawTimeline(pen, layout, timeline, FILLS, INK);
  const bars = named(pen, "fillRect").filter((/** @type {any} */ call) => call.style === "repaid");
  assert.equal(bars.length, timeline.tokens[2].filter((/** @type {number} */ tokens) => tokens > 0).length);
  const texts = named(pen, "fillText").map((/** @type {any} */ call) => call.args[0]);
  assert.ok(texts.includes("40") && texts.includes("/compact") && texts.includes("20k"));
  assert.ok(texts.some((/** @type {string} */ text) => text.startsWith("‹U+202E›evil")));
  for (const call of named(pen, "fillRect")) assert.ok(call.args.every(Number.isFinite));
});

test("gutter and map paint spans in their causes, the break over them", () => {
  const { blocks, timeline } = sampleState();
  const fills = timeline.causes;
  const layout = layoutRows(blocks.tokens, 0, 5, blocks.break, blocks.boundary);
  const pen = fakePen();
  drawGutter(pen, layout, blocks.spans, 0, 0, 5, 0, 16, fills);
  assert.deepEqual(pen.calls.map((/** @type {any} */ call) => call.style), ["hit", "hit", "hit", "repaid", "repaid", "repaid"]);
  const cut = pen.calls.slice(2, 4);
  assert.equal(cut[0].args[3] + cut[1].args[3], layout.heights[2] - 1);
  const empty = fakePen();
  drawGutter(empty, layoutRows([0], 0, 1, null, null), [[]], 0, 0, 1, 0, 16, fills);
  assert.equal(empty.calls.length, 0);
  const over = fakePen();
  drawMap(over, mapLayout(blocks, 600), 22, fills, INK, blocks.break, blocks.tokens);
  assert.equal(over.calls[over.calls.length - 1].style, "lost");
});

// ------------------------------------------------------------------------------------- colours

const CSS = readFileSync(new URL("../../codesmith_lab/widgets/workbench.css", import.meta.url), "utf8");

/** @param {boolean} dark @returns {Record<string, string>} */
function palette(dark) {
  const [light, rest] = [CSS.indexOf(".cslab {"), CSS.indexOf('.cslab[data-theme="dark"] {')];
  const text = dark ? CSS.slice(rest, CSS.indexOf("}", rest)) : CSS.slice(light, CSS.indexOf("}", light));
  const found = [...text.matchAll(/--([\w-]+): (?:var\([\w-]+, )?(#[0-9a-f]{6})/g)];
  return Object.fromEntries(found.map(([, name, color]) => [name, color]));
}

/** @param {string} hex linear RGB */
const linear = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255)
  .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
/** @param {string} hex WCAG 2 relative luminance */
const luminance = (hex) => linear(hex).reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
/** @param {string} a @param {string} b WCAG 2 contrast ratio */
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
// Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
/** @type {Record<string, number[][]>} */
const SIGHT = {
  full: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
/** @param {string} hex @param {number[][]} sight CIELAB under D65 */
function lab(hex, sight) {
  const rgb = linear(hex);
  const [r, g, b] = sight.map((row) => Math.max(0, row.reduce((sum, c, k) => sum + c * rgb[k], 0)));
  const f = [
    (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047, 0.2126 * r + 0.7152 * g + 0.0722 * b,
    (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
  ].map((t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116));
  return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])];
}

test("causes can be told apart by colour whatever the colour vision, in both themes", () => {
  for (const dark of [false, true]) {
    const colors = palette(dark);
    for (const [sight, matrix] of Object.entries(SIGHT)) {
      for (const [k, a] of STACK_ORDER.entries()) {
        for (const b of STACK_ORDER.slice(k + 1)) {
          const [one, two] = [lab(colors[a], matrix), lab(colors[b], matrix)];
          const distance = Math.hypot(...one.map((v, i) => v - two[i]));
          assert.ok(distance > 15, `${dark ? "dark" : "light"} ${sight}: ${a} and ${b} differ by ${distance.toFixed(1)}`);
        }
      }
    }
  }
});

test("text has a contrast of at least 4.5 in both themes", () => {
  const lab = { light: "#ffffff", dark: "#111111" };
  for (const dark of [false, true]) {
    const c = palette(dark);
    const card = c.card ?? "#2b2e33";
    const grounds = [c.bg, card, c.tint, dark ? lab.dark : lab.light, dark ? "#212121" : "#ffffff"];
    for (const ground of grounds) {
      for (const name of ["fg", "muted", "lost-text", "good-text"]) {
        const ratio = contrast(c[name], ground);
        assert.ok(ratio >= 4.5, `${dark ? "dark" : "light"} ${name} on ${ground}: ${ratio.toFixed(2)}`);
      }
    }
    for (const [text, ground] of [["chip-fg", "chip-bg"], ["on-fg", "on-bg"], ["fg", "mark-bg"]]) {
      assert.ok(contrast(c[text], c[ground]) >= 4.5, `${text} on ${ground}`);
    }
    assert.ok(contrast(c.focus, c.bg) >= 3 && contrast(c.edge, c.bg) >= 3, "edges of controls, focus");
  }
});

test("the shipped module imports nothing, names no host, and sets no markup", () => {
  const code = readFileSync(new URL("../../codesmith_lab/widgets/workbench.js", import.meta.url), "utf8");
  for (const word of ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http:", "https:"]) {
    assert.ok(!code.includes(word), word);
  }
  assert.doesNotMatch(code, /^\s*import[\s{*"']/m);
  assert.doesNotMatch(CSS, /url\(|@import|https?:/);
});
