// @ts-check
/**
 * The workbench view. Python computes; this file only draws and reports what a person does.
 *
 * Every number for people arrives as ready text, every integer is used for proportions only.
 * All text may come from a stranger's log: it reaches the page as textContent, value or fillText.
 * One plain module without imports, because an inlined widget module cannot have neighbours.
 *
 * Order: types, text, editor text, geometry, drawing, then the view from top to bottom.
 */

/** @typedef {{value: string, label: string, group?: string}} Choice */
/** @typedef {{value: string, label: string, tone?: string}} Figure */
/**
 * @typedef {object} Head
 * @property {string} name
 * @property {string} turns_text
 * @property {string} model
 * @property {Choice[]} models
 * @property {string} rules_text
 * @property {string} drift_label
 * @property {Figure[]} figures
 * @property {string[]} notes
 * @property {Choice[]} scope_options
 * @property {boolean} edited
 * @property {boolean} [can_undo]
 * @property {boolean} [can_redo]
 */
/** @typedef {{turn: number, text: string, tone?: string}} TurnMark */
/** @typedef {{causes: string[], tokens: number[][], totals: number[], labels: string[], marks: TurnMark[]}} Timeline */
/** @typedef {{zone: string, title: string, subtitle: string, rows: number[]}} Zone */
/** @typedef {{block: number, share: number, text: string}} Break */
/**
 * @typedef {object} Blocks
 * @property {number} turn
 * @property {Zone[]} zones
 * @property {string[]} name
 * @property {string[]} badge
 * @property {number[]} tokens
 * @property {string[]} tokens_text
 * @property {number[][][]} spans
 * @property {boolean[]} editable
 * @property {number | null} boundary
 * @property {Break | null} break
 */
/**
 * @typedef {object} Editor
 * @property {number} block
 * @property {string} key
 * @property {string} name
 * @property {string} text
 * @property {boolean} editable
 * @property {string} readonly_reason
 * @property {number[][]} marks
 * @property {number} seq
 * @property {string} stability
 * @property {string[]} stabilities
 * @property {string} position_text
 * @property {boolean} can_up
 * @property {boolean} can_down
 * @property {string} note
 */
/** @typedef {{name: string, cause: string, tokens_text: string, cost_text: string, total: boolean}} Line */
/**
 * @typedef {object} Side
 * @property {{title: string, body: string, tone: string, also: string[]}} diagnosis
 * @property {Line[]} lines
 * @property {{value: string, text: string, more: string} | null} multiple
 * @property {{turn_text: string, text: string, turn: number}[]} audit
 * @property {{title: string, rows: {name: string, value: string}[]} | null} compare
 * @property {{title: string, heads: string[], rows: string[][], note: string} | null} reported
 */
/** @typedef {{id: string, text: string, saves_text: string, applied: boolean}} Remedy */
/** @typedef {{turn: number, turn_text: string, text: string, cost_text: string, certainty: string, tone: string}} Finding */
/** @typedef {{rows: Remedy[], note: string, findings: Finding[]}} Advice */
/** @typedef {{seq: number, key: string, text: string}} Edit */
/** @typedef {{seq: number, action: string, value?: string}} Request */
/**
 * @typedef {object} State
 * @property {Head} head
 * @property {Timeline} timeline
 * @property {number} turn
 * @property {Blocks} blocks
 * @property {number} selected
 * @property {Editor} editor
 * @property {Edit} edit
 * @property {Request} request
 * @property {string} scope
 * @property {Side} side
 * @property {Advice} advice
 * @property {string | null} board the model that is drawn below, as "IPY_MODEL_" and its id
 * @property {string} announce
 * @property {string} error
 * @property {number} ack
 */
/** @typedef {import("@anywidget/types").AnyModel<State>} Model */
/** @typedef {string | CanvasPattern} Fill */
/** @typedef {Record<string, Fill>} Fills */
/** @typedef {{fg: string, muted: string, line: string, lost: string, bg: string, font: string}} Ink */
/**
 * The part of a 2D context that the drawing functions use; a recording fake is enough to test them.
 * @typedef {Pick<CanvasRenderingContext2D, "fillStyle" | "strokeStyle" | "lineWidth" | "font" | "textAlign"
 *   | "textBaseline" | "fillRect" | "beginPath" | "moveTo" | "lineTo" | "stroke" | "arc" | "fill" | "fillText"
 *   | "measureText">} Pen
 */

/** What each cause means, in words: legend, and the accessible name of a block. @type {Record<string, string>} */
export const CAUSE_TEXT = {
  hit: "hit",
  new: "new this turn",
  repaid: "paid again: the prefix moved",
  rounding: "rest of a cache unit",
  expired: "expired before this turn",
  unmarked: "not marked for the cache",
};
/** Bars are stacked from the axis up in this order: what was cached lies at the bottom, as in the prompt. */
export const STACK_ORDER = ["hit", "unmarked", "expired", "repaid", "new", "rounding"];

const NAMES = { pinned: "pinned prefix", log: "append log", scratch: "turn scratch" };
const ROW_MIN_PX = 27;
const ROW_MAX_PX = 150;
const BREAK_ROW_PX = 60;
const SEAM_PX = 20;
const ALL_ROWS = 200;
const CODE_LINE_PX = 18;
const CODE_PAD_PX = 9;
const CODE_LEFT_PX = 6;
const CODE_RIGHT_PX = 12;
const WRAP_CHARS = 30000;
const TILE_PX = 8;
const ANNOUNCE_MS = 700;
const HIDDEN_LOOKS = 20;
const HIDDEN_WAIT_MS = 150;
const LONG_LINE = 20000;
const ANSWER_WAIT_MS = 3000;

// ---------------------------------------------------------------------------------------- text

// C0, DEL, C1, soft hyphen, bidi and invisible format characters, line and tag separators, lone surrogates.
// U+200D and U+FE0F stay: emoji are made with them.
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;

/**
 * One line of text in which characters that cannot be seen, or that reorder others, are spelled out.
 * @param {string} text
 * @param {number} [limit] characters kept before an ellipsis
 */
export function visibleText(text, limit = 600) {
  let cut = text;
  if (cut.length > limit) {
    const inPair = /[\ud800-\udbff]/.test(cut[limit - 1]);
    cut = cut.slice(0, inPair ? limit - 1 : limit) + "…";
  }
  return cut.replace(UNSEEN, (ch) => {
    const code = /** @type {number} */ (ch.codePointAt(0));
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

// --------------------------------------------------------------------------------- editor text

/**
 * A text area turns CR and CRLF into LF, which would silently change a section's bytes.
 * The map remembers where, so that offsets and edits can be carried over to the true text.
 * @typedef {{raw: string, shown: string, pairs: number[]}} TextMap pairs: shown offsets of LFs that are CRLF
 */

/** @param {string} raw @returns {TextMap} */
export function textMap(raw) {
  if (!raw.includes("\r")) return { raw, shown: raw, pairs: [] };
  const pairs = [];
  for (let at = raw.indexOf("\r\n"); at >= 0; at = raw.indexOf("\r\n", at + 2)) pairs.push(at - pairs.length);
  return { raw, shown: raw.replace(/\r\n?/g, "\n"), pairs };
}

/** How many values of the rising list `sorted` are below `x`. @param {ArrayLike<number>} sorted @param {number} x */
export function countBelow(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Offset in the shown text to offset in the true text. @param {TextMap} map @param {number} shown */
export function toRaw(map, shown) {
  return shown + countBelow(map.pairs, shown);
}

/** Offset in the true text to offset in the shown text. @param {TextMap} map @param {number} raw */
export function toShown(map, raw) {
  if (!map.pairs.length) return raw;
  let low = 0;
  let high = map.shown.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (toRaw(map, middle) < raw) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The true text after the person changed the shown one: untouched parts keep their line ends byte for byte,
 * new line breaks take the kind that the text uses most.
 * @param {TextMap} map
 * @param {string} value the new shown text
 */
export function editedRaw(map, value) {
  if (map.raw === map.shown) return value;
  const old = map.shown;
  const most = Math.min(old.length, value.length);
  let head = 0;
  while (head < most && old.charCodeAt(head) === value.charCodeAt(head)) head += 1;
  let tail = 0;
  while (tail < most - head && old.charCodeAt(old.length - 1 - tail) === value.charCodeAt(value.length - 1 - tail)) {
    tail += 1;
  }
  const ends = old.split("\n").length - 1;
  const end = map.pairs.length * 2 >= ends ? "\r\n" : map.raw.includes("\n") ? "\n" : "\r";
  const middle = value.slice(head, value.length - tail).replace(/\n/g, end);
  return map.raw.slice(0, toRaw(map, head)) + middle + map.raw.slice(toRaw(map, old.length - tail));
}

/** Offsets at which the lines of a text start. @param {string} text @returns {number[]} */
export function lineStarts(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/**
 * One line cut at the ranges that changed. An empty range (something was deleted there) becomes an edge.
 * @param {string} text whole text
 * @param {number} start first offset of the line
 * @param {number} end offset after its last character, the line break not counted
 * @param {number[][]} marks rising, disjoint [start, end) ranges in offsets of the whole text
 * @returns {{text: string, kind: "plain" | "mark" | "edge"}[]}
 */
export function markedPieces(text, start, end, marks) {
  /** @type {{text: string, kind: "plain" | "mark" | "edge"}[]} */
  const pieces = [];
  let at = start;
  for (const [from, to] of marks) {
    if (from > end) break;
    if (to < start || (to === start && from < to)) continue;
    const left = Math.max(from, at);
    const right = Math.min(to, end);
    if (left > at) pieces.push({ text: text.slice(at, left), kind: "plain" });
    if (from >= to) pieces.push({ text: "", kind: "edge" });
    else if (right > left) pieces.push({ text: text.slice(left, right), kind: "mark" });
    else if (from >= start && from === end) pieces.push({ text: "", kind: "edge" });
    at = Math.max(at, right);
  }
  if (at < end) pieces.push({ text: text.slice(at, end), kind: "plain" });
  return pieces;
}

// ------------------------------------------------------------------------------------ geometry

/** Height of a block's row: grows with its tokens, more and more slowly. @param {number} tokens */
export function blockHeight(tokens) {
  const grown = ROW_MIN_PX + 17 * Math.log2(1 + Math.max(0, tokens) / 1000);
  return Math.round(Math.min(ROW_MAX_PX, grown));
}

/**
 * @typedef {object} RowLayout
 * @property {Float64Array} tops top of each row of the zone
 * @property {Float64Array} heights
 * @property {number} total
 * @property {number | null} breakY
 * @property {number | null} boundY
 * @property {number} breakRow row index inside the zone that the break cuts, or -1
 * @property {number} breakTextTop where that row's text starts, so that line and text do not meet
 */

/**
 * Rows of one zone from top to bottom. A line that lies between two blocks gets a seam of its own;
 * one that cuts a block is kept clear of the block's text.
 * @param {number[]} tokens of all blocks
 * @param {number} start first block of the zone
 * @param {number} end block after the last
 * @param {Break | null} brk
 * @param {number | null} boundary block before which the dynamic boundary lies
 * @returns {RowLayout}
 */
export function layoutRows(tokens, start, end, brk, boundary) {
  const count = Math.max(0, end - start);
  const tops = new Float64Array(count);
  const heights = new Float64Array(count);
  /** @type {number | null} */ let breakY = null;
  /** @type {number | null} */ let boundY = null;
  let breakRow = -1;
  let breakTextTop = 0;
  let y = 0;
  for (let k = 0; k < count; k += 1) {
    const block = start + k;
    if (block === boundary) {
      boundY = y + SEAM_PX / 2;
      y += SEAM_PX;
    }
    const here = brk && brk.block === block ? brk : null;
    if (here && here.share <= 0) {
      breakY = y + SEAM_PX / 2;
      y += SEAM_PX;
    }
    tops[k] = y;
    heights[k] = blockHeight(tokens[block]);
    if (here && here.share > 0 && here.share < 1) {
      heights[k] = Math.max(heights[k], BREAK_ROW_PX);
      const line = Math.round(Math.min(heights[k] - 10, Math.max(10, here.share * heights[k])));
      breakRow = k;
      breakY = y + line;
      breakTextTop = line < 34 ? line + 10 : 3;
    }
    y += heights[k];
    if (here && here.share >= 1) {
      breakY = y + SEAM_PX / 2;
      y += SEAM_PX;
    }
  }
  if (boundary === end) {
    boundY = y + SEAM_PX / 2;
    y += SEAM_PX;
  }
  return { tops, heights, total: y, breakY, boundY, breakRow, breakTextTop };
}

/** Row under a height, clamped to the rows there are; -1 without rows. @param {ArrayLike<number>} tops @param {number} y */
export function rowAt(tops, y) {
  if (!tops.length) return -1;
  return Math.max(0, countBelow(tops, y + 1e-9) - 1);
}

/**
 * Rows [first, last) to build for a scroll position: all of a short list, a window of a long one.
 * @param {ArrayLike<number>} tops
 * @param {number} scrollTop
 * @param {number} height of the visible part
 * @param {number} [overscan] pixels built beyond it on both sides
 * @param {number} [all] up to so many rows everything is built
 */
export function rowWindow(tops, scrollTop, height, overscan = 300, all = ALL_ROWS) {
  if (tops.length <= all) return { first: 0, last: tops.length };
  return {
    first: rowAt(tops, Math.max(0, scrollTop - overscan)),
    last: Math.min(tops.length, rowAt(tops, scrollTop + height + overscan) + 1),
  };
}

/**
 * @typedef {object} TimeLayout
 * @property {number} count
 * @property {number} plotWidth
 * @property {number} step width of one turn, bar and gap
 * @property {number} top highest place of a bar
 * @property {number} base the axis
 * @property {number} max tokens at full height
 * @property {number[]} x0
 * @property {number[]} x1
 * @property {number[]} bars turns that get a bar: all, or the tallest of each pixel column
 */

/**
 * @param {number[]} totals tokens per turn
 * @param {number} width
 * @param {number} height
 * @returns {TimeLayout}
 */
export function timelineLayout(totals, width, height) {
  const count = totals.length;
  const plotWidth = Math.max(1, width - 38);
  const step = count ? Math.min(64, plotWidth / count) : plotWidth;
  const gap = step >= 8 ? 3 : step >= 4 ? 1 : 0;
  let max = 1;
  for (const total of totals) if (total > max) max = total;
  /** @type {number[]} */ const x0 = [];
  /** @type {number[]} */ const x1 = [];
  /** @type {number[]} */ const bars = [];
  for (let i = 0; i < count; i += 1) {
    const left = Math.round(i * step);
    x0.push(left);
    x1.push(Math.max(left + 1, Math.round((i + 1) * step) - gap));
    const before = bars[bars.length - 1];
    if (step < 1 && bars.length && x0[before] === left) {
      if (totals[i] > totals[before]) bars[bars.length - 1] = i;
    } else bars.push(i);
  }
  return { count, plotWidth, step, top: 34, base: height - 18, max, x0, x1, bars };
}

/** Turn under a horizontal place, clamped; -1 without turns. @param {TimeLayout} layout @param {number} x */
export function turnAt(layout, x) {
  if (!layout.count) return -1;
  return Math.max(0, Math.min(layout.count - 1, Math.floor(x / layout.step)));
}

/** Height in pixels above the axis. @param {TimeLayout} layout @param {number} tokens */
export function barTop(layout, tokens) {
  return layout.base - Math.round((tokens / layout.max) * (layout.base - layout.top));
}

/**
 * Rectangles of all bars by cause, as flat [x, y, width, height, ...] lists. Edges are rounded on the running
 * sum, so the parts of a bar always add up to its height.
 * @param {TimeLayout} layout
 * @param {string[]} causes
 * @param {number[][]} tokens one list per cause
 * @returns {Record<string, number[]>}
 */
export function timelineRects(layout, causes, tokens) {
  const order = causes
    .map((cause, index) => ({ cause, index, rank: STACK_ORDER.indexOf(cause) }))
    .sort((a, b) => a.rank - b.rank);
  /** @type {Record<string, number[]>} */
  const rects = {};
  for (const { cause } of order) rects[cause] = [];
  for (const turn of layout.bars) {
    const x = layout.x0[turn];
    const width = layout.x1[turn] - x;
    let sum = 0;
    let bottom = layout.base;
    for (const { cause, index } of order) {
      const amount = tokens[index][turn];
      if (!(amount > 0)) continue;
      sum += amount;
      const y = barTop(layout, sum);
      if (y < bottom) rects[cause].push(x, y, width, bottom - y);
      bottom = y;
    }
  }
  return rects;
}

/** Up to three round values below a maximum, for the scale. @param {number} max */
export function scaleTicks(max) {
  if (!(max >= 10)) return [];
  const power = 10 ** Math.floor(Math.log10(max));
  const step = [0.5, 1, 2, 5].map((m) => m * power).find((s) => max / s < 4) ?? power * 5;
  const ticks = [];
  for (let value = step; value <= max; value += step) ticks.push(value);
  return ticks;
}

/** Turn numbers (1-based) under the axis, at least `room` pixels apart. @param {number} count @param {number} step @param {number} [room] */
export function turnTicks(count, step, room = 44) {
  if (!count) return [];
  let every = 1;
  for (const next of [1, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000]) {
    every = next;
    if (next * step >= room) break;
  }
  const ticks = [1];
  for (let turn = every; turn <= count; turn += every) if (turn > 1 && (turn - 1) * step >= room * 0.7) ticks.push(turn);
  return ticks;
}

/**
 * Flags above the bars: two rows, no text over another; a flag without room keeps its pole only.
 * @param {{x: number, width: number}[]} flags by rising x
 * @param {number} right edge
 * @returns {{x: number, row: number}[]} left edge of the text, row 0 or 1, or -1 for a pole only
 */
export function placeFlags(flags, right) {
  const ends = [-Infinity, -Infinity];
  return flags.map(({ x, width }) => {
    const left = Math.max(0, Math.min(x + 4, right - width));
    const row = ends.findIndex((end) => left >= end + 10);
    if (row >= 0) ends[row] = left + width;
    return { x: left, row };
  });
}

/**
 * The whole prompt of one turn, true to scale, as a column: runs of one cause, seams between blocks that are
 * tall enough, and where each block begins.
 * @param {Pick<Blocks, "tokens" | "spans" | "zones">} blocks
 * @param {number} height
 */
export function mapLayout(blocks, height) {
  const count = blocks.tokens.length;
  const zones = blocks.zones.filter((zone) => zone.rows[1] > zone.rows[0]);
  const gaps = 4 * Math.max(0, zones.length - 1);
  let total = 0;
  for (const tokens of blocks.tokens) total += tokens;
  const scale = total > 0 ? Math.max(0, height - gaps) / total : 0;
  const tops = new Float64Array(count);
  /** @type {{y: number, height: number, cause: number}[]} */ const runs = [];
  /** @type {number[]} */ const seams = [];
  let sum = 0;
  let shift = 0;
  let zone = 0;
  let bottom = 0;
  for (let i = 0; i < count; i += 1) {
    if (zone + 1 < zones.length && i >= zones[zone + 1].rows[0]) {
      zone += 1;
      shift += 4;
      bottom = Math.round(sum * scale) + shift;
    }
    tops[i] = sum * scale + shift;
    if (blocks.tokens[i] * scale >= 7 && tops[i] > 0) seams.push(Math.round(tops[i]));
    let inside = sum;
    for (const [cause, tokens] of blocks.spans[i]) {
      inside += tokens;
      const y = Math.round(inside * scale) + shift;
      const last = runs[runs.length - 1];
      if (y <= bottom) continue;
      if (last && last.cause === cause && last.y + last.height === bottom) last.height = y - last.y;
      else runs.push({ y: bottom, height: y - bottom, cause });
      bottom = y;
    }
    sum += blocks.tokens[i];
  }
  return { tops, runs, seams, scale };
}

// ------------------------------------------------------------------------------------- drawing

/**
 * One repeatable square of a cause's pattern: the kind of mark, not only its colour, tells causes apart.
 * @param {Pen} pen
 * @param {string} cause
 * @param {string} color
 * @param {string} second colour of the marks
 * @param {number} size in device pixels
 */
export function drawTile(pen, cause, color, second, size) {
  pen.fillStyle = color;
  pen.fillRect(0, 0, size, size);
  pen.fillStyle = second;
  pen.strokeStyle = second;
  if (cause === "repaid") {
    pen.lineWidth = size * 0.26;
    strokeDiagonals(pen, size, 1);
  } else if (cause === "unmarked") {
    pen.lineWidth = size * 0.12;
    strokeDiagonals(pen, size, 1);
    strokeDiagonals(pen, size, -1);
  } else if (cause === "expired") {
    pen.fillRect(0, Math.round(size * 0.125), size, Math.max(1, Math.round(size * 0.17)));
    pen.fillRect(0, Math.round(size * 0.625), size, Math.max(1, Math.round(size * 0.17)));
  } else if (cause === "rounding") {
    for (const at of [0.25, 0.75]) {
      pen.beginPath();
      pen.arc(size * at, size * at, size * 0.13, 0, Math.PI * 2);
      pen.fill();
    }
  }
}

/** @param {Pen} pen @param {number} size @param {1 | -1} slope 1 rises to the right */
function strokeDiagonals(pen, size, slope) {
  pen.beginPath();
  for (const at of [-1, 0, 1]) {
    pen.moveTo(at * size - size, slope > 0 ? size * 2 : -size);
    pen.lineTo(at * size + size * 2, slope > 0 ? -size : size * 2);
  }
  pen.stroke();
}

/** @param {number} value */
function shortCount(value) {
  if (value >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  return value >= 1000 ? `${+(value / 1000).toPrecision(3)}k` : String(value);
}

/**
 * @param {Pen} pen
 * @param {TimeLayout} layout
 * @param {Timeline} data
 * @param {Fills} fills
 * @param {Ink} ink
 */
export function drawTimeline(pen, layout, data, fills, ink) {
  pen.font = ink.font;
  pen.textBaseline = "alphabetic";
  pen.textAlign = "right";
  for (const tick of scaleTicks(layout.max)) {
    const y = barTop(layout, tick);
    pen.fillStyle = ink.line;
    pen.fillRect(0, y, layout.plotWidth + 4, 1);
    pen.fillStyle = ink.muted;
    pen.fillText(shortCount(tick), layout.plotWidth + 38, y + 4);
  }
  const rects = timelineRects(layout, data.causes, data.tokens);
  for (const cause of Object.keys(rects)) {
    const list = rects[cause];
    pen.fillStyle = fills[cause] ?? ink.muted;
    for (let k = 0; k < list.length; k += 4) pen.fillRect(list[k], list[k + 1], list[k + 2], list[k + 3]);
  }
  pen.fillStyle = ink.fg;
  pen.fillRect(0, layout.base, layout.plotWidth + 4, 1);
  pen.fillStyle = ink.muted;
  for (const turn of turnTicks(layout.count, layout.step)) {
    const middle = (layout.x0[turn - 1] + layout.x1[turn - 1]) / 2;
    const half = pen.measureText(String(turn)).width / 2;
    pen.fillText(String(turn), Math.max(half * 2, middle + half), layout.base + 14);
  }
  drawFlags(pen, layout, data, ink);
}

/** @param {Pen} pen @param {TimeLayout} layout @param {Timeline} data @param {Ink} ink */
function drawFlags(pen, layout, data, ink) {
  pen.textAlign = "left";
  const marks = data.marks
    .filter((mark) => mark.turn >= 0 && mark.turn < layout.count)
    .sort((a, b) => a.turn - b.turn)
    .map((mark) => ({ ...mark, text: visibleText(mark.text, 24), x: layout.x0[mark.turn] }));
  const places = placeFlags(
    marks.map((mark) => ({ x: mark.x, width: pen.measureText(mark.text).width })),
    layout.plotWidth,
  );
  marks.forEach((mark, index) => {
    const { x, row } = places[index];
    const y = row === 1 ? 15 : 1;
    const foot = barTop(layout, data.totals[mark.turn]) - 1;
    pen.fillStyle = mark.tone === "lost" ? ink.lost : ink.fg;
    if (row < 0) pen.fillRect(mark.x, Math.max(29, foot - 5), 1, Math.min(5, foot - 29));
    else {
      pen.fillRect(mark.x, y, 1, foot - y);
      pen.fillText(mark.text, x, y + 10);
    }
  });
}

/**
 * The cause gutter beside rows [first, last) of a zone.
 * @param {Pen} pen
 * @param {RowLayout} layout
 * @param {number[][][]} spans of all blocks
 * @param {number} start first block of the zone
 * @param {number} first
 * @param {number} last
 * @param {number} offset height at which the canvas begins
 * @param {number} width
 * @param {Fill[]} fills by cause index
 */
export function drawGutter(pen, layout, spans, start, first, last, offset, width, fills) {
  for (let k = first; k < last; k += 1) {
    const top = layout.tops[k] - offset;
    const height = layout.heights[k] - 1;
    const list = spans[start + k];
    let total = 0;
    for (const span of list) total += span[1];
    if (!(total > 0)) continue;
    let sum = 0;
    let y = 0;
    for (const [cause, tokens] of list) {
      sum += tokens;
      const next = Math.round((sum / total) * height);
      if (next > y) {
        pen.fillStyle = fills[cause];
        pen.fillRect(0, top + y, width, next - y);
      }
      y = next;
    }
  }
}

/**
 * The whole prompt as a column.
 * @param {Pen} pen
 * @param {ReturnType<typeof mapLayout>} layout
 * @param {number} width
 * @param {Fill[]} fills by cause index
 * @param {Ink} ink
 * @param {Break | null} brk
 * @param {number[]} tokens
 */
export function drawMap(pen, layout, width, fills, ink, brk, tokens) {
  for (const run of layout.runs) {
    pen.fillStyle = fills[run.cause];
    pen.fillRect(0, run.y, width, run.height);
  }
  pen.fillStyle = ink.bg;
  for (const y of layout.seams) pen.fillRect(0, y, width, 1);
  if (brk && brk.block >= 0 && brk.block < tokens.length) {
    const y = Math.round(layout.tops[brk.block] + brk.share * tokens[brk.block] * layout.scale);
    pen.fillRect(0, y - 2, width, 5);
    pen.fillStyle = ink.lost;
    pen.fillRect(0, y - 1, width, 3);
  }
}

// ---------------------------------------------------------------------------------- small tools

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[K]}
 */
function h(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = visibleText(text);
  return element;
}

/** @param {Element} element @param {string} text one line that may be hostile */
function setText(element, text) {
  const shown = visibleText(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** @param {Element} element @param {string} name @param {string} value */
function setAttr(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** @param {HTMLElement} element @param {boolean} off */
function setOff(element, off) {
  setAttr(element, "aria-disabled", String(off));
}

/** @param {Element} element */
function isOff(element) {
  return element.getAttribute("aria-disabled") === "true";
}

/**
 * Sizes a canvas to its place in device pixels and returns a cleared context that draws in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
function freshPen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const t = Math.max(1, Math.round(height * ratio));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
  } else {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, w, t);
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** @param {HTMLSelectElement} select @param {Choice[]} choices @param {string} value */
function fillSelect(select, choices, value) {
  const print = JSON.stringify(choices);
  if (select.dataset.choices !== print) {
    select.dataset.choices = print;
    /** @type {Map<string, HTMLElement>} */
    const groups = new Map();
    select.replaceChildren();
    for (const choice of choices) {
      const option = h("option", "", choice.label);
      option.value = choice.value;
      let home = groups.get(choice.group ?? "");
      if (!home) {
        home = choice.group ? h("optgroup") : select;
        if (home instanceof HTMLOptGroupElement) {
          home.label = choice.group ?? "";
          select.append(home);
        }
        groups.set(choice.group ?? "", home);
      }
      home.append(option);
    }
  }
  if (select.value !== value) select.value = value;
}

// ---------------------------------------------------------------------------------------- view

/** @typedef {"head" | "timeline" | "turn" | "blocks" | "selected" | "editor" | "scope" | "side" | "advice" | "announce" | "error" | "ack" | "board" | "look"} Part */

/**
 * What every part of the view shares: the model, the palette, and the ways to tell Python something.
 * @typedef {object} Desk
 * @property {Model} model
 * @property {HTMLElement} root
 * @property {AbortSignal} signal
 * @property {(...parts: Part[]) => void} changed asks for one redraw in the next frame
 * @property {<A extends unknown[]>(fn: (...args: A) => void) => (...args: A) => void} guard
 * @property {() => {fills: Fills, ink: Ink}} palette
 * @property {(action: string, value?: string) => void} ask queues a one-off command
 * @property {(text: string, key: string) => number} write sends the text of the editor, gives its number
 * @property {(turn: number) => void} goTurn
 * @property {(block: number) => void} goBlock
 * @property {(name: string, fallback: string) => string} chosen what the person chose, until Python has answered
 * @property {(text: string, x: number, y: number, inside: HTMLElement) => void} tip
 * @property {() => void} tipOff
 */

/** @param {Desk} desk @param {EventTarget} target @param {string} type @param {(event: any) => void} fn */
function on(desk, target, type, fn) {
  target.addEventListener(type, desk.guard(fn), { signal: desk.signal });
}

/** @param {Desk} desk */
function buildHead(desk) {
  const box = h("div", "cs-head");
  const what = h("div", "cs-what");
  const name = h("h2", "cs-clip cs-text");
  name.dir = "auto";
  const turns = h("span", "cs-muted cs-clip cs-text");
  const model = h("select");
  model.setAttribute("aria-label", "Model");
  const rules = h("span", "cs-muted cs-clip cs-text");
  const drift = h("span", "cs-chip cs-clip cs-text");
  const edited = h("span", "cs-chip cs-chip-plain", "edited");
  const figures = h("div", "cs-figures");
  what.append(name, turns, model, rules, drift, edited);
  box.append(what, figures);
  on(desk, model, "change", () => desk.ask("model", model.value));
  return {
    box,
    draw() {
      const head = desk.model.get("head");
      setText(name, head.name);
      name.title = visibleText(head.name);
      setText(turns, head.turns_text);
      fillSelect(model, head.models, desk.chosen("model", head.model));
      setText(rules, head.rules_text);
      rules.title = visibleText(head.rules_text);
      setText(drift, head.drift_label);
      setAttr(drift, "title", "the prefix drifted in this session");
      drift.hidden = !head.drift_label;
      edited.hidden = !head.edited;
      while (figures.children.length > head.figures.length) figures.lastElementChild?.remove();
      head.figures.forEach((figure, index) => {
        let box = figures.children[index];
        if (!box) {
          box = h("div", "cs-fig");
          box.append(h("b"), h("span"));
          figures.append(box);
        }
        setAttr(box.children[0], "class", toneClass(figure.tone).trim());
        setText(box.children[0], figure.value);
        setText(box.children[1], figure.label);
      });
    },
  };
}

/** @param {Desk} desk */
function buildTimeline(desk) {
  const box = h("div");
  const chart = h("div", "cs-time");
  chart.tabIndex = 0;
  chart.setAttribute("role", "slider");
  chart.setAttribute("aria-label", "Turn");
  chart.setAttribute("aria-valuemin", "1");
  const canvas = h("canvas");
  const frame = h("div", "cs-frame");
  const hover = h("div", "cs-hover");
  hover.hidden = true;
  chart.append(canvas, hover, frame);
  const legend = h("div", "cs-legend");
  const keys = h("div", "cs-legend");
  keys.style.margin = "0";
  const walk = h("div", "cs-walk");
  const place = h("span");
  const back = h("button", "", "◀");
  const next = h("button", "", "▶");
  back.setAttribute("aria-label", "Previous turn");
  next.setAttribute("aria-label", "Next turn");
  for (const button of [back, next]) button.type = "button";
  walk.append(place, back, next);
  legend.append(keys, h("span", "cs-space"), walk);
  box.append(chart, legend);
  /** @type {TimeLayout} */
  let layout = timelineLayout([], 1, 150);

  const count = () => desk.model.get("timeline").totals.length;
  /** @param {number} turn */
  const go = (turn) => desk.goTurn(Math.max(0, Math.min(count() - 1, turn)));
  /** @param {MouseEvent} event */
  const under = (event) => turnAt(layout, event.clientX - chart.getBoundingClientRect().left);
  /** @param {HTMLElement} element @param {number} turn @param {number} room */
  const cover = (element, turn, room) => {
    const width = Math.max(layout.x1[turn] - layout.x0[turn], 3);
    const top = barTop(layout, desk.model.get("timeline").totals[turn]) - room;
    element.style.left = `${layout.x0[turn] - room}px`;
    element.style.width = `${width + room * 2}px`;
    element.style.top = `${top}px`;
    element.style.height = `${layout.base - top + 1}px`;
  };
  on(desk, chart, "click", (/** @type {MouseEvent} */ event) => go(under(event)));
  on(desk, chart, "pointermove", (/** @type {PointerEvent} */ event) => {
    const turn = under(event);
    hover.hidden = turn < 0;
    if (turn < 0) return;
    cover(hover, turn, 2);
    const middle = (layout.x0[turn] + layout.x1[turn]) / 2;
    desk.tip(desk.model.get("timeline").labels[turn] ?? "", middle, layout.base + 4, chart);
  });
  on(desk, chart, "pointerleave", () => {
    hover.hidden = true;
    desk.tipOff();
  });
  on(desk, chart, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const turn = desk.model.get("turn");
    /** @type {Record<string, number>} */
    const to = {
      ArrowLeft: turn - 1, ArrowDown: turn - 1, ArrowRight: turn + 1, ArrowUp: turn + 1,
      PageDown: turn - 10, PageUp: turn + 10, Home: 0, End: count() - 1,
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    go(to[event.key]);
  });
  on(desk, back, "click", () => !isOff(back) && go(desk.model.get("turn") - 1));
  on(desk, next, "click", () => !isOff(next) && go(desk.model.get("turn") + 1));

  return {
    box,
    draw() {
      const data = desk.model.get("timeline");
      const { fills, ink } = desk.palette();
      const width = chart.clientWidth;
      const height = chart.clientHeight;
      layout = timelineLayout(data.totals, width, height);
      drawTimeline(freshPen(canvas, width, height), layout, data, fills, ink);
      const seen = data.causes.filter((_, index) => data.tokens[index].some((tokens) => tokens > 0));
      drawLegend(keys, seen, fills);
    },
    drawTurn() {
      const data = desk.model.get("timeline");
      const turn = Math.min(desk.model.get("turn"), data.totals.length - 1);
      frame.hidden = turn < 0;
      if (turn >= 0) cover(frame, turn, 3);
      setAttr(chart, "aria-valuemax", String(Math.max(1, data.totals.length)));
      setAttr(chart, "aria-valuenow", String(Math.max(1, turn + 1)));
      setAttr(chart, "aria-valuetext", visibleText(data.labels[turn] ?? `turn ${turn + 1}`));
      setText(place, `turn ${turn + 1} of ${data.totals.length}`);
      setOff(back, turn <= 0);
      setOff(next, turn >= data.totals.length - 1);
    },
  };
}

/** @param {HTMLElement} keys @param {string[]} causes @param {Fills} fills */
function drawLegend(keys, causes, fills) {
  if (keys.dataset.causes !== causes.join()) {
    keys.dataset.causes = causes.join();
    keys.replaceChildren(
      ...causes.map((cause) => {
        const key = h("span", "cs-key");
        key.append(h("canvas", "cs-swatch"), h("span", "", CAUSE_TEXT[cause] ?? cause));
        return key;
      }),
    );
  }
  causes.forEach((cause, index) => drawSwatch(/** @type {HTMLCanvasElement} */ (keys.children[index].firstChild), cause, fills, 12));
}

/** @param {HTMLCanvasElement} canvas @param {string} cause @param {Fills} fills @param {number} size */
function drawSwatch(canvas, cause, fills, size) {
  canvas.setAttribute("aria-hidden", "true");
  const pen = freshPen(canvas, size, size);
  pen.fillStyle = fills[cause] ?? "transparent";
  pen.fillRect(0, 0, size, size);
}

/** @typedef {HTMLDivElement & {look?: string, block?: number}} Row */

/** @param {Desk} desk @param {string} name of the zone */
function buildZone(desk, name) {
  const box = h("section", "cs-zone");
  box.dataset.zone = name;
  const head = h("div", "cs-zone-head");
  const title = h("h3");
  const subtitle = h("span", "cs-clip cs-text");
  if (name === "pinned") subtitle.classList.add("cs-mono");
  head.append(title, subtitle);
  const scroll = h("div", "cs-scroll");
  const stack = h("div", "cs-stack");
  const list = h("div");
  list.setAttribute("role", "listbox");
  const canvas = h("canvas");
  canvas.setAttribute("aria-hidden", "true");
  const bound = h("div", "cs-bound");
  bound.append(h("span", "", "dynamic boundary"));
  const cut = h("div", "cs-break");
  const cutText = h("span", "cs-clip cs-text");
  cut.append(cutText);
  const none = h("div", "cs-none", "empty");
  stack.append(list, canvas, bound, cut);
  scroll.append(stack, none);
  box.append(head, scroll);

  /** @type {Map<number, Row>} */
  const rows = new Map();
  /** @type {RowLayout} */
  let layout = layoutRows([], 0, 0, null, null);
  let start = 0;
  let end = 0;

  /** @param {number} block */
  const row = (block) => {
    let element = rows.get(block);
    if (!element) {
      element = /** @type {Row} */ (h("div", "cs-row"));
      element.block = block;
      element.setAttribute("role", "option");
      const label = h("span", "cs-clip cs-text");
      label.dir = "auto";
      const pauses = [h("span", "cs-hear", ", "), h("span", "cs-hear", ", ")];
      element.append(label, pauses[0], h("span", "cs-badge"), pauses[1], h("span", "cs-count"), h("span", "cs-hear"));
      rows.set(block, element);
    }
    return element;
  };

  /** @param {Row} element @param {number} block @param {Blocks} blocks @param {boolean} chosen */
  const dress = (element, block, blocks, chosen) => {
    const k = block - start;
    const textTop = k === layout.breakRow ? layout.breakTextTop : 3;
    const causes = [...new Set(blocks.spans[block].map(([cause]) => desk.model.get("timeline").causes[cause]))];
    const heard = causes.map((cause) => CAUSE_TEXT[cause] ?? cause);
    if (blocks.break?.block === block) heard.push("the prefix breaks here");
    const words = [blocks.name[block], blocks.badge[block], blocks.tokens_text[block], heard.join(", ")];
    const look = [layout.tops[k], layout.heights[k], textTop, chosen, start, end, ...words].join("\n");
    if (element.look === look) return;
    element.look = look;
    element.style.top = `${layout.tops[k]}px`;
    element.style.height = `${layout.heights[k]}px`;
    element.style.paddingTop = `${textTop}px`;
    // Hidden pauses and words make the row's own content its name for a screen reader.
    const [label, , badge, pause, tokens, more] = /** @type {HTMLElement[]} */ ([...element.children]);
    setText(label, words[0]);
    label.title = words[0].length > 24 ? visibleText(words[0], 300) : "";
    setText(badge, words[1]);
    badge.hidden = pause.hidden = !words[1];
    setText(tokens, words[2]);
    setText(more, ` tokens${heard.length ? ", " : ""}${words[3]}`);
    setAttr(element, "aria-selected", String(chosen));
    setAttr(element, "aria-posinset", String(k + 1));
    setAttr(element, "aria-setsize", String(end - start));
  };

  const paint = () => {
    const blocks = desk.model.get("blocks");
    const selected = desk.model.get("selected");
    const view = { top: scroll.scrollTop, height: scroll.clientHeight };
    const { first, last } = rowWindow(layout.tops, view.top, view.height);
    const inZone = selected >= start && selected < end;
    const stop = inZone ? selected : start;
    const wanted = new Set([stop]);
    for (let k = first; k < last; k += 1) wanted.add(start + k);
    const focused = activeRow();
    if (focused >= start && focused < end) wanted.add(focused);
    if (end <= start) wanted.clear();
    for (const [block, element] of rows) {
      if (wanted.has(block)) continue;
      element.remove();
      rows.delete(block);
    }
    let cursor = list.firstElementChild;
    for (const block of [...wanted].sort((a, b) => a - b)) {
      const element = row(block);
      dress(element, block, blocks, block === selected);
      // The attribute, not the property: without it a div claims -1 and still cannot take the focus.
      setAttr(element, "tabindex", block === stop ? "0" : "-1");
      if (element === cursor) cursor = cursor.nextElementSibling;
      else list.insertBefore(element, cursor);
    }
    paintGutter(blocks, view);
  };

  /** @param {Blocks} blocks @param {{top: number, height: number}} view */
  const paintGutter = (blocks, view) => {
    const from = Math.max(0, Math.floor(view.top - 300));
    const to = Math.min(layout.total, Math.ceil(view.top + view.height + 300));
    const { first, last } = rowWindow(layout.tops, view.top, view.height, 300, 0);
    canvas.style.top = `${from}px`;
    canvas.style.height = `${Math.max(1, to - from)}px`;
    const { fills } = desk.palette();
    const byIndex = desk.model.get("timeline").causes.map((cause) => fills[cause] ?? "gray");
    drawGutter(freshPen(canvas, 16, to - from), layout, blocks.spans, start, first, last, from, 16, byIndex);
  };

  const activeRow = () => {
    const active = /** @type {Document | ShadowRoot} */ (box.getRootNode()).activeElement;
    return active && list.contains(active) ? (/** @type {Row} */ (active).block ?? -1) : -1;
  };

  on(desk, scroll, "scroll", paint);
  on(desk, list, "click", (/** @type {MouseEvent} */ event) => {
    const element = /** @type {Row | null} */ (/** @type {Element} */ (event.target).closest(".cs-row"));
    if (element?.block !== undefined) {
      element.focus({ preventScroll: true });
      desk.goBlock(element.block);
    }
  });

  return {
    box, activeRow, paint,
    /** @param {Zone} zone @param {Blocks} blocks @param {number | null} boundary */
    draw(zone, blocks, boundary) {
      [start, end] = zone.rows;
      layout = layoutRows(blocks.tokens, start, end, blocks.break, boundary);
      setText(title, zone.title);
      setText(subtitle, zone.subtitle);
      subtitle.title = visibleText(zone.subtitle);
      setAttr(list, "aria-label", `Blocks of the ${NAMES[/** @type {"log"} */ (name)] ?? name}`);
      stack.hidden = end <= start;
      none.hidden = end > start;
      stack.style.height = `${layout.total}px`;
      bound.hidden = layout.boundY === null;
      bound.style.top = `${layout.boundY}px`;
      cut.hidden = layout.breakY === null;
      cut.style.top = `${layout.breakY}px`;
      setText(cutText, blocks.break?.text ?? "");
      if (scroll.clientHeight > 0) paint();
    },
    /** Brings a block, or the break, into view. @param {number} block */
    reveal(block) {
      if (block < start || block >= end) return;
      const top = layout.tops[block - start];
      const bottom = top + layout.heights[block - start];
      if (top < scroll.scrollTop) scroll.scrollTop = top - 20;
      else if (bottom > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = bottom - scroll.clientHeight + 20;
    },
    /** @param {number} block */
    focus(block) {
      rows.get(block)?.focus({ preventScroll: true });
    },
    /** @param {number} block */
    holds: (block) => block >= start && block < end,
    /** @param {string} key @param {number} block where a key leads from a block; -1 to stay */
    step(key, block) {
      if (key === "ArrowDown") return block + 1;
      if (key === "ArrowUp") return block - 1;
      if (key === "PageDown") return Math.min(end - 1, block + 10);
      if (key === "PageUp") return Math.max(start, block - 10);
      if (key === "Home") return start;
      return key === "End" ? end - 1 : -1;
    },
  };
}

/** @param {Desk} desk @param {() => void} openText puts the focus into the text area */
function buildZones(desk, openText) {
  const box = h("div", "cs-zones");
  const map = h("div", "cs-map");
  map.setAttribute("aria-hidden", "true");
  const canvas = h("canvas");
  const frame = h("div", "cs-frame");
  map.append(canvas, frame);
  const stack = h("div", "cs-clip");
  stack.style.whiteSpace = "normal";
  box.append(map, stack);
  /** @type {Map<string, ReturnType<typeof buildZone>>} */
  const zones = new Map();
  let shownTurn = -1;
  let shownBlock = -1;
  let follow = false;
  let layout = mapLayout({ tokens: [], spans: [], zones: [] }, 1);

  const drawMapNow = () => {
    const blocks = desk.model.get("blocks");
    const { fills, ink } = desk.palette();
    const [width, height] = [map.clientWidth, map.clientHeight];
    layout = mapLayout(blocks, height);
    const byIndex = desk.model.get("timeline").causes.map((cause) => fills[cause] ?? ink.muted);
    drawMap(freshPen(canvas, width, height), layout, width, byIndex, ink, blocks.break, blocks.tokens);
    const selected = desk.model.get("selected");
    frame.hidden = !(selected >= 0 && selected < blocks.tokens.length);
    if (frame.hidden) return;
    const tall = Math.max(4, blocks.tokens[selected] * layout.scale);
    frame.style.left = "-2px";
    frame.style.right = "-2px";
    frame.style.top = `${Math.max(0, Math.min(height - tall, layout.tops[selected])) - 1}px`;
    frame.style.height = `${tall + 2}px`;
  };
  /** @param {MouseEvent} event */
  const under = (event) => rowAt(layout.tops, event.clientY - map.getBoundingClientRect().top);
  on(desk, map, "click", (/** @type {MouseEvent} */ event) => under(event) >= 0 && desk.goBlock(under(event)));
  on(desk, map, "pointermove", (/** @type {PointerEvent} */ event) => {
    const block = under(event);
    const blocks = desk.model.get("blocks");
    if (block < 0) return;
    desk.tip(`${blocks.name[block]} · ${blocks.tokens_text[block]} tokens`, 26, event.clientY - map.getBoundingClientRect().top - 12, map);
  });
  on(desk, map, "pointerleave", () => desk.tipOff());

  on(desk, stack, "keydown", (/** @type {KeyboardEvent} */ event) => {
    const zone = [...zones.values()].find((one) => one.activeRow() >= 0);
    if (!zone || event.ctrlKey || event.metaKey) return;
    const chosen = desk.model.get("selected");
    // The focus follows the choice with the next frame: a quick second key means the row to come.
    const block = zone.activeRow() === shownBlock ? chosen : zone.activeRow();
    if (event.altKey) {
      if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
      event.preventDefault();
      if (block !== chosen) desk.goBlock(block);
      else moveBlock(desk, event.key === "ArrowUp");
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (block !== chosen) desk.goBlock(block);
      else if (event.key === "Enter") openText();
      return;
    }
    const to = ([...zones.values()].find((one) => one.holds(block)) ?? zone).step(event.key, block);
    if (to < 0 && event.key !== "ArrowUp") return;
    event.preventDefault();
    if (to < 0 || to >= desk.model.get("blocks").tokens.length) return;
    follow = true;
    desk.goBlock(to);
  });

  return {
    box,
    drawMap: drawMapNow,
    draw() {
      const blocks = desk.model.get("blocks");
      const selected = desk.model.get("selected");
      const active = [...zones.values()].map((zone) => zone.activeRow()).find((block) => block >= 0);
      const moving = follow || (active !== undefined && active === shownBlock && selected !== shownBlock);
      follow = false;
      const wanted = blocks.zones.map((zone) => zone.zone);
      if (wanted.join("\n") !== [...zones.keys()].join("\n")) {
        zones.clear();
        for (const name of wanted) zones.set(name, buildZone(desk, name));
        stack.replaceChildren(...[...zones.values()].map((zone) => zone.box));
      }
      let boundary = blocks.boundary;
      for (const zone of blocks.zones) {
        const [start, end] = zone.rows;
        const mine = boundary !== null && boundary >= start && boundary <= end && end > start;
        zones.get(zone.zone)?.draw(zone, blocks, mine ? boundary : null);
        if (mine) boundary = null;
      }
      for (const zone of zones.values()) {
        if (blocks.turn !== shownTurn && blocks.break) zone.reveal(blocks.break.block);
        if (selected !== shownBlock || blocks.turn !== shownTurn) zone.reveal(selected);
        if (zone.holds(selected) && moving) {
          zone.paint();
          zone.focus(selected);
        }
      }
      shownTurn = blocks.turn;
      shownBlock = selected;
      drawMapNow();
    },
  };
}

/** @param {Desk} desk @param {boolean} up */
function moveBlock(desk, up) {
  const editor = desk.model.get("editor");
  if (up ? editor.can_up : editor.can_down) desk.ask(up ? "move_up" : "move_down");
}

/** @param {Desk} desk */
function buildEditor(desk) {
  const box = h("div", "cs-middle");
  const card = h("section", "cs-editor");
  const top = h("div", "cs-bar cs-bar-top");
  const name = h("h3", "cs-clip cs-text");
  name.dir = "auto";
  const segments = buildStability(desk);
  const place = h("span", "cs-muted");
  const up = smallButton("↑", "Move this section up (Alt+Up)");
  const down = smallButton("↓", "Move this section down (Alt+Down)");
  const move = h("div", "cs-move");
  move.append(place, up, down);
  top.append(name, segments.box, move);

  const reason = h("p", "cs-reason");
  const code = buildCode(desk);
  const end = h("div", "cs-bar cs-bar-end");
  const scopeLabel = h("label", "cs-scope", "Apply edits");
  const scope = h("select");
  scopeLabel.append(scope);
  const wrap = smallButton("Wrap", "Break long lines to the width of the editor");
  const undo = smallButton("Undo", "Undo the last change in the workbench");
  const redo = smallButton("Redo", "Redo the change that was undone");
  const reset = smallButton("Reset", "Back to the session as it was recorded");
  const history = h("div", "cs-move");
  const order = smallButton("Order board", "Find the cheapest order of the sections, below the workbench");
  history.append(order, undo, redo, reset);
  end.append(scopeLabel, wrap, history);
  const note = h("p", "cs-note cs-text");
  card.append(top, reason, code.box, end);
  box.append(card, note);

  on(desk, up, "click", () => moveBlock(desk, true));
  on(desk, down, "click", () => moveBlock(desk, false));
  on(desk, wrap, "click", () => {
    if (isOff(wrap)) return;
    code.wrap(wrap.getAttribute("aria-pressed") !== "true");
    desk.changed("editor");
  });
  on(desk, order, "click", () => desk.ask("order_board"));
  on(desk, scope, "change", () => desk.ask("scope", scope.value));
  for (const [button, action] of /** @type {const} */ ([[undo, "undo"], [redo, "redo"], [reset, "reset"]])) {
    on(desk, button, "click", () => {
      if (!isOff(button)) desk.ask(action);
    });
  }
  return {
    box,
    focus: code.focus,
    draw() {
      const editor = desk.model.get("editor");
      const head = desk.model.get("head");
      if (!code.draw()) return;
      setText(name, editor.name || "no block chosen");
      name.title = visibleText(editor.name);
      segments.draw(editor);
      setText(place, editor.position_text);
      move.hidden = !editor.position_text && !editor.can_up && !editor.can_down;
      setOff(up, !editor.can_up);
      setOff(down, !editor.can_down);
      setText(reason, editor.readonly_reason);
      reason.hidden = editor.editable || !editor.readonly_reason;
      fillSelect(scope, head.scope_options, desk.chosen("scope", desk.model.get("scope")));
      scopeLabel.hidden = head.scope_options.length === 0;
      setAttr(wrap, "aria-pressed", String(code.wraps()));
      setOff(wrap, !code.canWrap());
      setAttr(order, "aria-expanded", String(Boolean(desk.model.get("board"))));
      setOff(undo, !(head.can_undo ?? true));
      setOff(redo, !(head.can_redo ?? true));
      setOff(reset, !head.edited);
      setText(note, editor.note);
      note.hidden = !editor.note;
    },
  };
}

/** @param {string} text @param {string} hint */
function smallButton(text, hint) {
  const button = h("button", "", text);
  button.type = "button";
  button.title = hint;
  if (text.length === 1) button.setAttribute("aria-label", hint.replace(/ \(.*/, ""));
  return button;
}

/** @param {Desk} desk */
function buildStability(desk) {
  const box = h("div", "cs-seg");
  box.setAttribute("role", "radiogroup");
  box.setAttribute("aria-label", "Stability");
  const buttons = () => /** @type {HTMLButtonElement[]} */ ([...box.children]);
  /** @param {HTMLButtonElement} button */
  const choose = (button) => {
    if (isOff(button) || button.getAttribute("aria-checked") === "true") return;
    desk.ask("stability", button.value);
  };
  on(desk, box, "click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (button) choose(button);
  });
  on(desk, box, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const all = buttons();
    const at = all.findIndex((button) => button === event.target);
    /** @type {Record<string, number>} */
    const to = {
      ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: all.length - 1,
    };
    if (at < 0 || !(event.key in to)) return;
    event.preventDefault();
    const button = all[(to[event.key] + all.length) % all.length];
    if (isOff(button)) return;
    button.focus();
    choose(button);
  });
  return {
    box,
    /** @param {Editor} editor */
    draw(editor) {
      box.hidden = !editor.stability;
      if (box.dataset.all !== editor.stabilities.join()) {
        box.dataset.all = editor.stabilities.join();
        box.replaceChildren(
          ...editor.stabilities.map((value) => {
            const button = h("button", "", value);
            button.type = "button";
            button.value = value;
            button.setAttribute("role", "radio");
            return button;
          }),
        );
      }
      const chosen = desk.chosen("stability", editor.stability);
      const known = editor.stabilities.includes(chosen);
      buttons().forEach((button, index) => {
        const checked = button.value === chosen;
        setAttr(button, "aria-checked", String(checked));
        setOff(button, !editor.editable);
        button.tabIndex = checked || (!known && index === 0) ? 0 : -1;
      });
    },
  };
}

/**
 * The text area, with line numbers and changed ranges painted behind it. Without wrapping only the visible lines
 * are built, so a text of a megabyte costs hardly more per stroke than a short one; a text that is wrapped is laid
 * out whole behind the area, which is why a long one is not.
 * @param {Desk} desk
 */
function buildCode(desk) {
  const box = h("div", "cs-code");
  const marks = h("div", "cs-marks");
  const lines = h("div", "cs-lines");
  for (const layer of [marks, lines]) layer.setAttribute("aria-hidden", "true");
  marks.dir = "ltr";
  const area = h("textarea");
  area.spellcheck = false;
  area.dir = "ltr";
  area.wrap = "off";
  for (const name of ["autocomplete", "autocapitalize", "autocorrect"]) area.setAttribute(name, "off");
  box.append(lines, marks, area);

  /** @type {string | null} */ let key = null;
  let name = "";
  let map = textMap("");
  let starts = [0];
  let typedSeq = 0;
  let composing = false;
  /** @type {number[][]} */ let ranges = [];
  let wanted = true;
  const flow = h("div", "cs-flow");
  const flowNumbers = h("div", "cs-flow");
  let laid = "";
  const canWrap = () => map.shown.length <= WRAP_CHARS;
  const wraps = () => wanted && canWrap();

  /** @param {string} raw */
  const take = (raw) => {
    map = textMap(raw);
    starts = lineStarts(map.shown);
    const digits = Math.max(2, String(starts.length).length);
    box.style.setProperty("--gutter", `${Math.ceil(digits * 7.3) + 20}px`);
  };
  /** Marks are shown only on the very text they were computed for. */
  const judge = () => {
    const editor = desk.model.get("editor");
    const theirs = editor.key === key && (editor.seq === typedSeq || editor.text === map.raw);
    ranges = theirs ? editor.marks.map(([from, to]) => [toShown(map, from), toShown(map, to)]) : [];
  };
  /** Every line in the flow of the page, as wide as the area's own, and numbers where its lines begin. */
  const layWrapped = () => {
    const width = area.clientWidth - CODE_LEFT_PX - CODE_RIGHT_PX;
    const print = JSON.stringify([width, ranges, map.shown]);
    if (print === laid) return;
    laid = print;
    flow.style.width = `${width}px`;
    const rows = starts.map((start, k) => {
      const end = k + 1 < starts.length ? starts[k + 1] - 1 : map.shown.length;
      return lineOf(markedPieces(map.shown, start, end, ranges));
    });
    flow.replaceChildren(...rows);
    marks.replaceChildren(flow);
    const tops = rows.map((row) => row.offsetTop);
    flowNumbers.replaceChildren(
      ...tops.map((top, k) => {
        const number = h("div", "", String(k + 1));
        number.style.top = `${top}px`;
        return number;
      }),
    );
    lines.replaceChildren(flowNumbers);
  };
  const paint = () => {
    box.classList.toggle("cs-wrapped", wraps());
    if (wraps()) {
      layWrapped();
      for (const layer of [flow, flowNumbers]) layer.style.top = `${CODE_PAD_PX - area.scrollTop}px`;
      return;
    }
    laid = "";
    const { scrollTop, scrollLeft } = area;
    const first = Math.max(0, Math.floor((scrollTop - CODE_PAD_PX) / CODE_LINE_PX) - 1);
    const last = Math.min(starts.length, first + Math.ceil(area.clientHeight / CODE_LINE_PX) + 3);
    /** @type {HTMLElement[]} */ const numbers = [];
    /** @type {HTMLElement[]} */ const painted = [];
    for (let k = first; k < last; k += 1) {
      const y = `${CODE_PAD_PX + k * CODE_LINE_PX - scrollTop}px`;
      const number = h("div", "", String(k + 1));
      number.style.top = y;
      numbers.push(number);
      const end = k + 1 < starts.length ? starts[k + 1] - 1 : map.shown.length;
      const line = markedLine(starts[k], end);
      if (!line) continue;
      line.style.top = y;
      line.style.left = `${CODE_LEFT_PX - scrollLeft}px`;
      painted.push(line);
    }
    lines.replaceChildren(...numbers);
    marks.replaceChildren(...painted);
  };
  /** @param {number} start @param {number} end */
  const markedLine = (start, end) => {
    if (!ranges.some(([from, to]) => from <= end && to >= start)) return null;
    const pieces = markedPieces(map.shown, start, Math.min(end, start + LONG_LINE), ranges);
    return pieces.every((piece) => piece.kind === "plain") ? null : lineOf(pieces);
  };
  /** @param {ReturnType<typeof markedPieces>} pieces */
  const lineOf = (pieces) => {
    const line = h("div");
    for (const piece of pieces) {
      const part = document.createElement(piece.kind === "mark" ? "mark" : "span");
      if (piece.kind === "edge") part.className = "cs-edge";
      part.textContent = piece.text;
      line.append(part);
    }
    return line;
  };

  /** @param {Editor} editor */
  const load = (editor) => {
    const edit = desk.model.get("edit");
    const same = key !== null && name === editor.name;
    const place = { top: area.scrollTop, left: area.scrollLeft, caret: area.selectionStart };
    // A second view of the same model must show what was typed in the first, answered or not.
    const newer = edit.key === editor.key && edit.seq > editor.seq;
    ({ key, name } = editor);
    typedSeq = newer ? edit.seq : editor.seq;
    take(newer ? edit.text : editor.text);
    if (area.value !== map.shown) area.value = map.shown;
    judge();
    if (same) {
      const caret = Math.min(place.caret, map.shown.length);
      area.setSelectionRange(caret, caret);
      area.scrollTo(place.left, place.top);
      return;
    }
    const rows = Math.max(12, Math.min(26, starts.length + 1));
    box.style.height = `${rows * CODE_LINE_PX + 2 * CODE_PAD_PX + 14}px`;
    const line = ranges.length ? countBelow(starts, ranges[0][0] + 1) - 1 : 0;
    area.setSelectionRange(0, 0);
    paint();
    const row = wraps() ? /** @type {HTMLElement | undefined} */ (flow.children[line]) : undefined;
    area.scrollTo(0, Math.max(0, (row ? row.offsetTop : line * CODE_LINE_PX) - 6 * CODE_LINE_PX));
  };

  const typed = () => {
    if (area.readOnly || key === null || area.value === map.shown) return;
    take(editedRaw(map, area.value));
    typedSeq = desk.write(map.raw, key);
    judge();
    paint();
  };
  on(desk, area, "input", typed);
  on(desk, area, "compositionstart", () => {
    composing = true;
  });
  on(desk, area, "compositionend", () => {
    composing = false;
    typed();
    desk.changed("editor");
  });
  on(desk, area, "scroll", paint);
  on(desk, area, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    moveBlock(desk, event.key === "ArrowUp");
  });
  const sizes = new ResizeObserver(desk.guard(paint));
  sizes.observe(box);
  desk.signal.addEventListener("abort", () => sizes.disconnect());

  return {
    box,
    focus: () => area.focus(),
    canWrap,
    wraps,
    /** @param {boolean} on */
    wrap(on) {
      wanted = on;
      area.scrollLeft = 0;
      paint();
    },
    /** @returns {boolean} false while a composition keeps another text waiting */
    draw() {
      const editor = desk.model.get("editor");
      if (editor.key !== key || key === null) {
        if (composing) return false;
        load(editor);
      }
      area.readOnly = !editor.editable;
      setAttr(area, "aria-label", editor.name ? `Text of section ${visibleText(editor.name)}` : "No block chosen");
      judge();
      paint();
      return true;
    },
  };
}

/** @param {Desk} desk */
function buildSide(desk) {
  const box = h("div", "cs-side");
  /** @param {string} title */
  const card = (title) => {
    const element = h("section", "cs-card");
    const head = h("h3", "", title);
    element.append(head);
    box.append(element);
    return { element, head };
  };
  const diagnosis = card("Diagnosis");
  const title = h("p", "cs-title cs-text");
  const body = h("p", "cs-muted cs-text");
  const also = h("ul", "cs-also");
  diagnosis.element.append(title, body, also);
  const compare = card("");
  const compareTable = h("table");
  const compareBody = h("tbody");
  compareTable.append(compareBody);
  compare.element.append(compareTable);
  const turn = card("This turn");
  const table = h("table");
  const tbody = h("tbody");
  table.append(h("caption", "cs-hear", "Tokens and cost of this turn"), tbody);
  turn.element.append(table);
  const reported = card("");
  const reportedTable = h("table");
  const reportedHead = h("thead");
  const reportedBody = h("tbody");
  const reportedNote = h("p", "cs-muted cs-text");
  reportedTable.append(reportedHead, reportedBody);
  reported.element.append(reportedTable, reportedNote);
  const multiple = card("The price of that byte");
  const value = h("b", "cs-big");
  const text = h("span", "cs-text");
  const first = h("p");
  const more = h("p", "cs-muted cs-text");
  first.append(value, text);
  multiple.element.append(first, more);
  const audit = card("Audit");
  const auditList = h("ul", "cs-audit");
  audit.element.append(auditList);
  on(desk, auditList, "click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (button) desk.goTurn(Number(button.dataset.turn));
  });

  /** The list stays as it is while it says the same. @param {Side} side */
  const drawAudit = (side) => {
    audit.element.hidden = side.audit.length === 0;
    const print = JSON.stringify(side.audit);
    if (auditList.dataset.print === print) return;
    auditList.dataset.print = print;
    renew(
      auditList,
      side.audit.map((entry) => {
        const item = h("li");
        const button = h("button", "", entry.turn_text);
        button.type = "button";
        button.title = `Go to turn ${entry.turn + 1}`;
        button.dataset.turn = String(entry.turn);
        item.append(button, h("span", "cs-text", entry.text));
        return item;
      }),
    );
  };
  return {
    box,
    draw() {
      const side = desk.model.get("side");
      const { fills } = desk.palette();
      setAttr(title, "class", `cs-title cs-text${toneClass(side.diagnosis.tone)}`);
      setText(title, side.diagnosis.title);
      setText(body, side.diagnosis.body);
      body.hidden = !side.diagnosis.body;
      also.hidden = side.diagnosis.also.length === 0;
      also.replaceChildren(...side.diagnosis.also.map((line) => h("li", "cs-text", line)));
      compare.element.hidden = !side.compare;
      if (side.compare) {
        setText(compare.head, side.compare.title);
        drawLines(compareBody, side.compare.rows.map((row) => [row.name, row.value]));
      }
      drawLines(tbody, side.lines.map((line) => [line.name, line.tokens_text, line.cost_text]));
      side.lines.forEach((line, index) => {
        const row = tbody.children[index];
        if (line.total) row.className = "cs-total";
        const swatch = line.cause ? h("canvas", "cs-swatch") : h("span", "cs-swatch");
        if (swatch instanceof HTMLCanvasElement) drawSwatch(swatch, line.cause, fills, 10);
        row.firstElementChild?.prepend(swatch);
      });
      turn.element.hidden = side.lines.length === 0;
      reported.element.hidden = !side.reported;
      if (side.reported) {
        setText(reported.head, side.reported.title);
        const row = h("tr");
        row.append(...side.reported.heads.map((text) => {
          const cell = h("th", "cs-muted", text);
          cell.scope = "col";
          return cell;
        }));
        reportedHead.replaceChildren(row);
        drawLines(reportedBody, side.reported.rows);
        setText(reportedNote, side.reported.note);
        reportedNote.hidden = !side.reported.note;
      }
      multiple.element.hidden = !side.multiple;
      setText(value, side.multiple?.value ?? "");
      setText(text, side.multiple?.text ?? "");
      setText(more, side.multiple?.more ?? "");
      drawAudit(side);
    },
  };
}

/** What went wrong over the whole session, and what would have been cheaper. @param {Desk} desk */
function buildAdvice(desk) {
  const found = h("section", "cs-card cs-advice");
  found.setAttribute("aria-label", "Findings");
  const findings = h("ul");
  found.append(h("h3", "", "Findings"), findings);
  const box = h("section", "cs-card cs-advice");
  box.setAttribute("aria-label", "Try instead");
  const list = h("ul");
  const note = h("p", "cs-muted cs-text");
  box.append(h("h3", "", "Try instead"), list, note);
  const both = h("div", "cs-advices");
  both.append(found, box);
  on(desk, list, "click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (button) desk.ask("apply", button.dataset.id);
  });
  on(desk, findings, "click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    if (button) desk.goTurn(Number(button.dataset.turn));
  });
  /** The list is made anew only when it says something else. @param {Advice} advice */
  const drawFindings = (advice) => {
    found.hidden = advice.findings.length === 0;
    const print = JSON.stringify(advice.findings);
    if (findings.dataset.print === print) return;
    findings.dataset.print = print;
    renew(
      findings,
      advice.findings.map((row) => {
        const item = h("li");
        const button = h("button", "cs-link", row.turn_text);
        button.type = "button";
        button.dataset.turn = String(row.turn);
        button.title = `Go to turn ${row.turn + 1}`;
        const text = h("span", "cs-text", row.text);
        text.append(" ", h("span", "cs-muted", `(${row.certainty})`));
        item.append(button, text, h("b", toneClass(row.tone).trim(), row.cost_text));
        return item;
      }),
    );
  };
  return {
    box: both,
    draw() {
      const advice = desk.model.get("advice");
      drawFindings(advice);
      box.hidden = advice.rows.length === 0 && !advice.note;
      setText(note, advice.note);
      note.hidden = !advice.note;
      const ids = JSON.stringify(advice.rows.map((row) => row.id));
      if (list.dataset.ids !== ids) {
        list.dataset.ids = ids;
        renew(
          list,
          advice.rows.map((row) => {
            const item = h("li");
            const button = smallButton("Apply", "");
            button.dataset.id = row.id;
            item.append(h("span", "cs-text"), h("b"), button);
            return item;
          }),
        );
      }
      advice.rows.forEach((row, index) => {
        const [text, saves, button] = list.children[index].children;
        setText(/** @type {HTMLElement} */ (text), row.text);
        setText(/** @type {HTMLElement} */ (saves), row.saves_text);
        setText(/** @type {HTMLElement} */ (button), row.applied ? "Applied" : "Apply");
        setAttr(button, "aria-label", `Apply: ${row.text}, ${row.saves_text}`);
        setAttr(button, "aria-pressed", String(row.applied));
      });
    },
  };
}

/**
 * New items for a list; where one of its buttons had the focus, the one in its place gets it.
 * @param {HTMLElement} list @param {HTMLElement[]} items
 */
function renew(list, items) {
  const buttons = () => [...list.querySelectorAll("button")];
  const root = /** @type {Document | ShadowRoot} */ (list.getRootNode());
  const at = buttons().findIndex((button) => button === root.activeElement);
  list.replaceChildren(...items);
  if (at >= 0) buttons().slice(0, at + 1).pop()?.focus({ preventScroll: true });
}

/** @param {string | undefined} tone */
function toneClass(tone) {
  return tone === "lost" ? " cs-lost" : tone === "good" ? " cs-good" : "";
}

/** @param {HTMLElement} tbody @param {string[][]} lines name, then the cells */
function drawLines(tbody, lines) {
  tbody.replaceChildren(
    ...lines.map(([name, ...cells]) => {
      const row = h("tr");
      const head = h("th");
      head.scope = "row";
      head.append(h("span", "cs-text", name));
      row.append(head, ...cells.map((cell) => h("td", "", cell)));
      return row;
    }),
  );
}

/** Another widget of Python's, drawn below by its own view. @param {Desk} desk */
function buildBoard(desk) {
  const box = h("section", "cs-board");
  box.setAttribute("aria-label", "Order board");
  box.tabIndex = -1;
  box.hidden = true;
  let shown = "";
  /** @type {{el: HTMLElement, remove(): void} | null} */
  let view = null;
  const clear = () => {
    view?.remove();
    view = null;
    box.replaceChildren();
    box.hidden = true;
  };
  desk.signal.addEventListener("abort", clear);
  return {
    box,
    async draw() {
      const name = desk.model.get("board") ?? "";
      if (name === shown) return;
      const opening = shown === "" && desk.root.dataset.ready === "1";
      shown = name;
      clear();
      if (!name) return;
      const manager = /** @type {any} */ (desk.model.widget_manager);
      const made = await manager.create_view(await manager.get_model(name.replace("IPY_MODEL_", "")));
      if (shown !== name || desk.signal.aborted) {
        made.remove();
        return;
      }
      view = made;
      box.append(made.el);
      box.hidden = false;
      if (opening) {
        box.focus({ preventScroll: true });
        box.scrollIntoView({ block: "nearest" });
      }
    },
  };
}

/** Notes, errors and the live region under the widget. @param {Desk} desk */
function buildFoot(desk) {
  const notes = h("div", "cs-foot");
  const error = h("div", "cs-error");
  error.setAttribute("role", "alert");
  error.hidden = true;
  const live = h("div", "cs-hear");
  live.setAttribute("role", "status");
  live.setAttribute("aria-live", "polite");
  let own = "";
  let timer = 0;
  const drawError = () => {
    const text = [desk.model.get("error"), own].filter(Boolean).join(" ");
    setText(error, text);
    error.hidden = !text;
  };
  desk.signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    parts: [notes, error, live],
    drawError,
    /** @param {string} text an error of this view itself */
    fail(text) {
      own = text;
      drawError();
    },
    draw() {
      const list = desk.model.get("head").notes;
      notes.replaceChildren(...list.map((note) => h("span", "cs-text", note)));
      notes.hidden = list.length === 0;
    },
    /** A screen reader hears the result once typing pauses, not after every stroke. */
    announce() {
      clearTimeout(timer);
      timer = setTimeout(() => setText(live, desk.model.get("announce")), ANNOUNCE_MS);
    },
  };
}

// ----------------------------------------------------------------------------------- the desk

/** @param {HTMLElement} root */
function themeOf(root) {
  const lab = root.closest("[data-jp-theme-light]") ?? document.querySelector("[data-jp-theme-light]");
  if (lab) return lab.getAttribute("data-jp-theme-light") === "false" ? "dark" : "light";
  if (document.body.classList.contains("vscode-dark")) return "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Reads the palette that the style sheet gives, once a look. @param {HTMLElement} root @param {HTMLElement} probe */
function paletteReader(root, probe) {
  /** @type {{fills: Fills, ink: Ink} | null} */
  let kept = null;
  return {
    forget() {
      kept = null;
    },
    read() {
      if (kept) return kept;
      const style = getComputedStyle(root);
      const seen = getComputedStyle(probe);
      /** @type {Ink} */
      const ink = {
        fg: style.color, muted: seen.color, line: seen.borderTopColor, bg: seen.backgroundColor,
        lost: seen.textDecorationColor, font: `11px ${style.fontFamily || "sans-serif"}`,
      };
      const size = Math.round(TILE_PX * (window.devicePixelRatio || 1));
      /** @type {Fills} */
      const fills = {};
      for (const cause of STACK_ORDER) {
        const color = style.getPropertyValue(`--${cause}`).trim() || "gray";
        const second = style.getPropertyValue(`--${cause}-2`).trim() || color;
        fills[cause] = color === second ? color : pattern(cause, color, second, size);
      }
      const result = { fills, ink };
      if (root.isConnected) kept = result;
      return result;
    },
  };
}

/** @param {string} cause @param {string} color @param {string} second @param {number} size in device pixels */
function pattern(cause, color, second, size) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  drawTile(pen, cause, color, second, size);
  const made = /** @type {CanvasPattern} */ (pen.createPattern(tile, "repeat"));
  made.setTransform(new DOMMatrix().scale(TILE_PX / size));
  return made;
}

/**
 * Talks to Python: numbered edits and commands. Edits go at once and the newest wins; commands wait for the answer
 * to the one before, because two values written to one trait in a row may arrive as the second alone.
 * @param {Model} model
 * @param {() => void} changed
 * @param {AbortSignal} signal
 */
function speaker(model, changed, signal) {
  let newest = 0;
  let waitingFor = 0;
  let timer = 0;
  /** @type {{action: string, value?: string}[]} */
  const queue = [];
  /** @type {Map<string, {value: string, seq: number}>} */
  const choices = new Map();
  const nextSeq = () => {
    newest = Math.max(newest, model.get("edit").seq, model.get("request").seq, model.get("ack")) + 1;
    return newest;
  };
  const pump = () => {
    const next = waitingFor ? undefined : queue.shift();
    if (!next) return;
    waitingFor = nextSeq();
    const choice = choices.get(next.action);
    if (choice && choice.value === next.value) choice.seq = waitingFor;
    model.set("request", { seq: waitingFor, ...next });
    model.save_changes();
    timer = setTimeout(giveUp, ANSWER_WAIT_MS);
  };
  const release = () => {
    clearTimeout(timer);
    waitingFor = 0;
    pump();
  };
  const giveUp = () => {
    choices.clear();
    release();
    changed();
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    /** @param {string} action @param {string} [value] */
    ask(action, value) {
      queue.push(value === undefined ? { action } : { action, value });
      if (value !== undefined) choices.set(action, { value, seq: Infinity });
      pump();
      changed();
    },
    /** @param {string} text @param {string} key */
    write(text, key) {
      const seq = nextSeq();
      model.set("edit", { seq, key, text });
      model.save_changes();
      return seq;
    },
    /** Called when Python has answered. */
    heard() {
      const ack = model.get("ack");
      for (const [action, { seq }] of choices) if (ack >= seq) choices.delete(action);
      if (waitingFor && ack >= waitingFor) release();
    },
    /** @param {string} action @param {string} fallback */
    chosen: (action, fallback) => choices.get(action)?.value ?? fallback,
  };
}

/** What has to be drawn again when a trait changes. @type {Record<string, Part[]>} */
const PARTS = {
  head: ["head", "editor"], timeline: ["timeline", "turn", "blocks"], turn: ["turn"], blocks: ["blocks"],
  selected: ["blocks"], editor: ["editor"], scope: ["editor"], side: ["side"], advice: ["advice"], announce: ["announce"],
  error: ["error"], ack: ["ack", "head", "editor"], board: ["board", "editor"],
};

/** @type {import("@anywidget/types").Render<State>} */
function render({ model, el }) {
  const stop = new AbortController();
  const root = h("div", "cslab");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Prompt cache workbench");
  // Otherwise JupyterLab takes arrow keys, Enter and letters for the notebook around the widget.
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  // JupyterLab listens on the field itself and would forbid line breaks and undo in it.
  root.addEventListener("beforeinput", (event) => event.stopPropagation(), { capture: true, signal: stop.signal });
  const probe = h("div", "cs-probe");
  const tip = h("div", "cs-tip");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  const palette = paletteReader(root, probe);
  /** @type {Set<Part>} */
  const dirty = new Set();
  let frame = 0;
  let looks = 0;
  let timer = 0;

  /** @param {unknown} error */
  const fail = (error) => {
    const message = error instanceof Error ? error.message : String(error);
    foot.fail(`The workbench view met an error: ${message}. Run the cell again to draw it afresh.`);
    console.error(error);
  };
  /** @type {Desk["guard"]} */
  const guard = (fn) => (...args) => {
    try {
      fn(...args);
    } catch (error) {
      fail(error);
    }
  };
  /** @param {Part[]} parts */
  const changed = (...parts) => {
    for (const part of parts) dirty.add(part);
    if (!frame) frame = requestAnimationFrame(flush);
  };
  const speak = speaker(model, () => changed("head", "editor"), stop.signal);
  /** @param {"turn" | "selected"} trait @param {number} value */
  const choose = (trait, value) => {
    if (model.get(trait) === value) return;
    model.set(trait, value);
    model.save_changes();
  };
  /** @type {Desk} */
  const desk = {
    model, root, signal: stop.signal, changed, guard,
    palette: palette.read,
    ask: speak.ask,
    write: speak.write,
    chosen: speak.chosen,
    goTurn: (turn) => choose("turn", turn),
    goBlock: (block) => choose("selected", block),
    tip(text, x, y, inside) {
      const from = inside.getBoundingClientRect();
      const to = root.getBoundingClientRect();
      setText(tip, text);
      tip.hidden = !text;
      const left = from.left - to.left + x - (inside.clientWidth > 100 ? tip.offsetWidth / 2 : 0);
      tip.style.left = `${Math.max(8, Math.min(root.clientWidth - tip.offsetWidth - 8, left))}px`;
      tip.style.top = `${from.top - to.top + y}px`;
    },
    tipOff() {
      tip.hidden = true;
    },
  };

  const head = buildHead(desk);
  const timeline = buildTimeline(desk);
  const editor = buildEditor(desk);
  const zones = buildZones(desk, editor.focus);
  const advice = buildAdvice(desk);
  const side = buildSide(desk);
  const board = buildBoard(desk);
  const foot = buildFoot(desk);
  const grid = h("div", "cs-grid");
  grid.append(zones.box, editor.box, side.box, advice.box);
  const body = h("div", "cs-body");
  body.append(head.box, timeline.box, grid, board.box, ...foot.parts);
  root.append(body, tip, probe);

  /** @param {Part[]} parts @param {() => void} draw */
  const when = (parts, draw) => {
    if (parts.some((part) => dirty.has(part))) guard(draw)();
  };
  const flush = () => {
    frame = 0;
    // Out of sight nothing can be measured. JupyterLab hides the page for a moment when it changes the theme,
    // too short for the size observer to notice, so look again a few times; later the observer calls.
    if (!root.isConnected || root.clientWidth === 0) {
      if (looks < HIDDEN_LOOKS) timer = setTimeout(changed, HIDDEN_WAIT_MS);
      looks += 1;
      return;
    }
    looks = 0;
    if (dirty.has("look")) palette.forget();
    when(["ack"], speak.heard);
    when(["head", "look"], head.draw);
    when(["head"], foot.draw);
    when(["timeline", "look"], timeline.draw);
    when(["timeline", "turn", "look"], timeline.drawTurn);
    when(["editor"], editor.draw);
    when(["side", "look"], side.draw);
    when(["advice"], advice.draw);
    when(["blocks", "look"], zones.draw);
    when(["board"], () => void board.draw().catch(fail));
    when(["announce"], foot.announce);
    when(["error"], foot.drawError);
    dirty.clear();
    root.dataset.ack = String(model.get("ack"));
    root.dataset.ready = "1";
  };

  for (const [trait, parts] of Object.entries(PARTS)) {
    const listen = () => changed(...parts);
    model.on(`change:${trait}`, listen);
    stop.signal.addEventListener("abort", () => model.off(`change:${trait}`, listen));
  }
  const relook = guard(() => {
    root.dataset.theme = themeOf(root);
    changed("look");
  });
  const themes = new MutationObserver(relook);
  for (const node of [document.documentElement, document.body]) {
    themes.observe(node, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", relook, { signal: stop.signal });
  window.addEventListener("resize", relook, { signal: stop.signal });
  let width = 0;
  const sizes = new ResizeObserver(
    guard(() => {
      if (root.clientWidth === width) {
        if (dirty.size) changed();
        else zones.drawMap();
        return;
      }
      width = root.clientWidth;
      relook();
    }),
  );
  sizes.observe(root);
  sizes.observe(zones.box);

  el.append(root);
  relook();
  changed("head", "timeline", "turn", "blocks", "editor", "side", "advice", "error", "ack", "board");
  return () => {
    stop.abort();
    themes.disconnect();
    sizes.disconnect();
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    root.remove();
  };
}

export default { render };
