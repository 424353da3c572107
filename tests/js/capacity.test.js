// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  across, highest, nextMark, rowUnder, ticks, turnLabels, visibleText, withLoad, withTurns, xOf,
} from "../../codesmith_lab/widgets/capacity.js";

test("unseen and reordering characters are spelled out", () => {
  assert.equal(visibleText("a\u0000b\u001b[31m"), "a␀b␛[31m");
  assert.equal(visibleText("\u202eevil"), "‹U+202E›evil");
  assert.equal(visibleText("abcdef", 3), "abc…");
});

test("every row has a place, and every place a row", () => {
  for (const count of [1, 2, 75, 500, 5000]) {
    const place = across(count, 900);
    for (const row of [0, count >> 1, count - 1]) assert.equal(rowUnder(place, xOf(place, row)), row);
    assert.equal(rowUnder(place, -50), 0);
    assert.equal(rowUnder(place, 9000), count - 1);
  }
  assert.equal(rowUnder(across(0, 900), 10), -1);
  assert.ok(across(10, 5).step > 0);
});

test("the scale fits its curves and leaves unknown values out", () => {
  assert.equal(highest([[1, null, 3], []], 2), 3);
  assert.equal(highest([[null]], 1), 1);
  assert.deepEqual(ticks(6.5), [2, 4, 6]);
  assert.deepEqual(ticks(1), [0.5, 1]);
  assert.deepEqual(ticks(0), []);
  for (const max of [0.3, 1.08, 4.4, 9, 80]) assert.ok(ticks(max).length <= 5 && ticks(max).length > 0);
});

test("turn numbers stand where turns begin, apart from each other", () => {
  const turn = Array.from({ length: 120 }, (_, i) => i >> 1);
  const place = across(120, 900);
  const labels = turnLabels(turn, place);
  assert.equal(labels[0].text, "1");
  labels.forEach((label, k) => {
    assert.equal(turn[label.row] + 1, Number(label.text));
    assert.ok(label.row === 0 || turn[label.row - 1] !== turn[label.row]);
    if (k) assert.ok(xOf(place, label.row) - xOf(place, labels[k - 1].row) >= 40);
  });
});

test("walking from wish to wish stops at the ends", () => {
  const marks = [[3, 1, 0], [7, 2, 1], [20, 3, 2]];
  assert.equal(nextMark(marks, 0, 1), 3);
  assert.equal(nextMark(marks, 3, 1), 7);
  assert.equal(nextMark(marks, 20, 1), 20);
  assert.equal(nextMark(marks, 20, -1), 7);
  assert.equal(nextMark(marks, 2, -1), 2);
  assert.equal(nextMark([], 5, 1), 5);
});

test("a drawn load stays from 0 to 1, and the others stay as they were", () => {
  assert.deepEqual(withLoad([0.1, 0.2], 1, 7), [0.1, 1]);
  assert.deepEqual(withLoad([0.1, 0.2], 0, -1), [0, 0.2]);
  assert.deepEqual(withLoad([0.1], 0, 0.12345), [0.123]);
  const before = [0.5];
  withLoad(before, 0, 1);
  assert.deepEqual(before, [0.5]);
});

test("a trajectory grows by its last load and keeps two turns", () => {
  assert.deepEqual(withTurns([0.1, 0.4], 2), [0.1, 0.4, 0.4, 0.4]);
  assert.deepEqual(withTurns([0.1, 0.2, 0.3], -10), [0.1, 0.2]);
  assert.equal(withTurns(Array(495).fill(0), 10).length, 500);
  assert.deepEqual(withTurns([], 1), [0, 0]);
});
