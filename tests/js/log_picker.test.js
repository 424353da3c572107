import assert from "node:assert/strict";
import { test } from "node:test";
import { pieceOf } from "../../codesmith_lab/widgets/log_picker.js";

test("pieces cover a file without a gap and end", () => {
  for (const [size, chunk] of [[0, 4], [1, 4], [4, 4], [10, 4], [7, 0]]) {
    let at = 0;
    let pieces = 0;
    while (at < size) {
      const [from, to] = pieceOf(size, at, chunk);
      assert.equal(from, at);
      assert.ok(to > from && to - from <= Math.max(1, chunk));
      at = to;
      pieces += 1;
    }
    assert.ok(pieces <= size);
  }
});
