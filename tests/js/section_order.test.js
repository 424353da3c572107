// @ts-check
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  RATE_TEXT, blockEdges, blockWidth, curvePoints, drawPrompt, drawRateTile, movablePlace, placeAt, rowTop, speaker,
  visibleText,
} from "../../codesmith_lab/widgets/section_order.js";

/** A pen that writes down what it is told. */
function fakePen() {
  /** @type {any[]} */
  const calls = [];
  /** @type {any} */
  const pen = { calls, fillStyle: "", strokeStyle: "", lineWidth: 1, font: "", textAlign: "", textBaseline: "" };
  for (const name of ["fillRect", "beginPath", "moveTo", "lineTo", "stroke", "fillText", "setLineDash"]) {
    pen[name] = (/** @type {any[]} */ ...args) => calls.push({ name, args, style: pen.fillStyle });
  }
  return pen;
}

/** A model as anywidget gives it; Python's answers are written by the test. */
function fakeModel() {
  /** @type {any} */
  const state = { request: { seq: 0, action: "" }, ack: 0 };
  /** @type {any[]} */
  const sent = [];
  /** @type {any} */
  const model = {
    sent,
    get: (/** @type {string} */ name) => state[name],
    set: (/** @type {string} */ name, /** @type {any} */ value) => (state[name] = value),
    save_changes: () => sent.push(state.request),
    answer: () => (state.ack = state.request.seq),
  };
  return model;
}

const INK = { fg: "fg", muted: "muted", line: "line", bg: "bg", today: "today", font: "11px x" };

test("hostile text is one visible line", () => {
  assert.equal(visibleText("a\u0000\u202e\nb"), "a␀‹U+202E›␊b");
  assert.equal(visibleText("x".repeat(500), 10), "x".repeat(10) + "…");
});

test("rows and places are inverse, with and without a boundary", () => {
  for (const boundary of [null, 0, 3, 7]) {
    for (let place = 0; place < 7; place += 1) {
      assert.equal(placeAt(rowTop(place, boundary) + 1, 7, boundary), place);
      assert.equal(placeAt(rowTop(place, boundary) + 33, 7, boundary), place);
    }
  }
  assert.equal(placeAt(-50, 7, 2), 0);
  assert.equal(placeAt(5000, 7, 2), 6);
});

test("fixed sections at the ends are no places", () => {
  const order = [0, 2, 1, 3, 4];
  const fixed = [true, false, false, false, true];
  assert.deepEqual([0, 1, 2, 3, 4].map((place) => movablePlace(order, fixed, place)), [0, 0, 1, 2, 2]);
});

test("blocks are as wide as their tokens, and the smallest is seen", () => {
  assert.equal(blockWidth(500, 1000), 50);
  assert.equal(blockWidth(1, 100000), 0.8);
  assert.deepEqual(blockEdges([100, 300, 600], 50), [0, 5, 20, 50]);
  assert.deepEqual(blockEdges([0, 0], 50), [0, 0, 0]);
});

test("the survival curve falls in steps at the blocks", () => {
  assert.deepEqual(curvePoints([0, 10, 40], [1000, 250], 5, 100), [[0, 5], [10, 5], [10, 80], [40, 80]]);
});

test("every rate has a pattern of its own", () => {
  const looks = RATE_TEXT.map((_, rate) => {
    const pen = fakePen();
    drawRateTile(pen, rate, "color", "second", 8);
    return JSON.stringify(pen.calls.map((/** @type {any} */ c) => [c.name, c.args]));
  });
  assert.equal(new Set(looks).size, RATE_TEXT.length);
});

test("the picture fills the width with the blocks in order", () => {
  const pen = fakePen();
  const shown = {
    order: [1, 0], locked: [], marks: ["", ""], boundary: 1, survival: [900, 500],
    today: { tokens: [100, 300], survival: [500, 450] }, moving: "",
  };
  const sections = {
    name: ["a", "b"], tokens: [100, 300], tokens_text: [], rate: [4, 0], rate_text: [], badge: [], fixed: [], label: [],
  };
  drawPrompt(pen, shown, sections, 440, ["r0", "r1", "r2", "r3", "r4"], INK, 1);
  const blocks = pen.calls.filter((/** @type {any} */ c) => c.name === "fillRect" && /^r\d/.test(String(c.style)));
  assert.deepEqual(blocks.map((/** @type {any} */ c) => [c.style, c.args[0], Math.round(c.args[2])]), [["r0", 40, 299], ["r4", 340, 99]]);
  assert.equal(pen.calls.filter((/** @type {any} */ c) => c.name === "stroke").length, 2);
});

test("commands wait for their answers, and only the last place of a drag is asked for", () => {
  const model = fakeModel();
  const stop = new AbortController();
  const speak = speaker(model, stop.signal);
  speak.ask({ action: "drag", name: "a", to: 1 });
  speak.ask({ action: "drag", name: "a", to: 2 });
  speak.ask({ action: "drag", name: "a", to: 3 });
  assert.deepEqual(model.sent.map((/** @type {any} */ r) => [r.seq, r.to]), [[1, 1]]);
  model.answer();
  speak.heard();
  assert.deepEqual(model.sent.map((/** @type {any} */ r) => [r.seq, r.to]), [[1, 1], [2, 3]]);
  speak.ask({ action: "drag", name: "a", to: 4 });
  speak.ask({ action: "move", name: "a", to: 4 });
  speak.ask({ action: "undo" });
  for (let k = 0; k < 3; k += 1) {
    model.answer();
    speak.heard();
  }
  assert.deepEqual(model.sent.slice(2).map((/** @type {any} */ r) => r.action), ["move", "undo"]);
  assert.equal(speak.idle(), true);
  stop.abort();
});

test("neighbouring shades and text stand out in both themes", () => {
  const css = readFileSync(new URL("../../codesmith_lab/widgets/section_order.css", import.meta.url), "utf8");
  const themes = [...css.matchAll(/\.csorder(?:\[data-theme="dark"\])? \{([^}]*--rate-0[^}]*)\}/g)].map((found) => found[1]);
  assert.equal(themes.length, 2);
  for (const theme of themes) {
    /** @param {string} name */
    const color = (name) => {
      const hex = new RegExp(`--${name}: (?:var\\([^,]*, )?#([0-9a-f]{6})`).exec(theme);
      assert.ok(hex, name);
      return hex[1];
    };
    for (const name of ["fg", "muted", "lost-text", "good-text"]) {
      assert.ok(contrast(color(name), color("bg")) >= 4.5, `${name} ${contrast(color(name), color("bg"))}`);
    }
    for (const rate of [1, 2, 3, 4]) {
      assert.ok(contrast(color(`rate-${rate}`), color(`rate-${rate}-2`)) >= 2.4, `pattern ${rate}`);
    }
  }
});

/** Contrast ratio of two colours (WCAG 2.2). @param {string} a @param {string} b */
function contrast(a, b) {
  const [x, y] = [a, b].map((hex) => {
    const [r, g, bl] = [0, 2, 4].map((at) => {
      const value = parseInt(hex.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
  });
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
