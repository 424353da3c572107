// @ts-check
/**
 * The capacity lab's view. Python computes; this file only draws and reports what a person does.
 *
 * Numbers for people arrive as ready text; other numbers place curves and bars. All text may come from a
 * stranger's log: it reaches the page as textContent, value or fillText.
 * One plain module without imports, because an inlined widget module cannot have neighbours.
 *
 * Order: types, text, geometry, drawing, small helpers, then the view from top to bottom.
 */

/** @typedef {{value: string, label: string}} Choice */
/**
 * @typedef {object} Head
 * @property {string} title
 * @property {Choice[]} sources
 * @property {string} source
 * @property {Choice[]} models
 * @property {string} model
 * @property {Choice[]} figures
 * @property {boolean} compare
 * @property {string[]} changed names of the settings that differ from the reference's
 * @property {string} toml
 * @property {string[]} notes
 * @property {boolean} drawing
 */
/** @typedef {number | string | boolean} Value */
/** @typedef {{name: string, label: string, help: string, low: number, high: number, step: number, kind: string,
 *   choices: Choice[], default: Value, default_text: string}} Setting */
/** @typedef {{title: string, rows: Setting[]}} Group */
/** @typedef {(number | null)[]} Curve */
/** @typedef {{pressure: Curve, p_fail: Curve, low: number, medium: number}} Other */
/**
 * @typedef {object} Chart
 * @property {number[]} turn
 * @property {number[]} post 1 where a row was observed after a tool
 * @property {Curve} pressure
 * @property {Curve} capacity
 * @property {Curve} p_fail
 * @property {number} low
 * @property {number} medium
 * @property {number[][]} marks [row, intervention 1 to 3, 0 done, 1 throttled, 2 not at this point]
 * @property {Other | null} other the reference's curves
 */
/** @typedef {{name: string, fact: string, sum: string, value: number, text: string}} PressureRow */
/** @typedef {{name: string, sum: string, value: number, text: string, change: string, other: string}} RiskRow */
/**
 * @typedef {object} Detail
 * @property {number} row
 * @property {string} title
 * @property {string} place
 * @property {string} why
 * @property {string} band
 * @property {string} p_text
 * @property {string} p_other_text
 * @property {PressureRow[]} h_rows
 * @property {string} h_text
 * @property {string} c_text
 * @property {string} slack_text
 * @property {RiskRow[]} z_rows
 * @property {string} z_text
 * @property {string} moved
 */
/**
 * @typedef {object} Costs
 * @property {string} state "working", "ready" or "formula"
 * @property {{name: string, cost_text: string, change_text: string, tone: string, tokens_text: string, count_text: string}[]} rows
 * @property {{turn_text: string, action_text: string, repaid_text: string, saved_text: string, net_text: string,
 *   tone: string, pays_text: string}[]} items
 * @property {string} sentence
 * @property {string[]} notes
 */
/**
 * @typedef {object} State
 * @property {Head} head
 * @property {Group[]} groups
 * @property {Record<string, Value>} values
 * @property {Chart} chart
 * @property {Detail} detail
 * @property {Costs} costs
 * @property {number} selected
 * @property {{seq: number, values: Record<string, Value>}} asked
 * @property {{seq: number, values: number[]}} loads
 * @property {{seq: number, action: string, value: string}} request
 * @property {string} announce
 * @property {string} error
 * @property {number} ack
 */
/** @typedef {import("@anywidget/types").AnyModel<State>} Model */
/** @typedef {{fg: string, muted: string, line: string, edge: string, bg: string, card: string, pressure: string,
 *   capacity: string, risk: string, act: string, medium: string, high: string, font: string}} Ink */
/** @typedef {{left: number, right: number, step: number, count: number}} Across */

const LEFT_PX = 58;
const RIGHT_PX = 10;
const PRESSURE_PX = 150;
const RISK_PX = 170;
const LANE_PX = 17;
const AXIS_PX = 20;
const DRAW_PX = 110;
const LANES = ["refresh", "replay", "replan"];
const STATES = ["done", "throttled", "not at this point"];
const HIDDEN_LOOKS = 20;
const HIDDEN_WAIT_MS = 150;
const LOAD_STEP = 0.05;
const TURNS_STEP = 10;
const WALK_KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);
const MOST_TURNS = 500;

// ---------------------------------------------------------------------------------------- text

// C0, DEL, C1, soft hyphen, bidi and invisible format characters, line and tag separators, lone surrogates.
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
    return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

// ------------------------------------------------------------------------------------ geometry

/** @param {number} count rows @param {number} width of the chart @returns {Across} */
export function across(count, width) {
  const right = Math.max(LEFT_PX + 1, width - RIGHT_PX);
  return { left: LEFT_PX, right, step: (right - LEFT_PX) / Math.max(1, count), count };
}

/** Middle of a row. @param {Across} place @param {number} row */
export function xOf(place, row) {
  return place.left + (row + 0.5) * place.step;
}

/** Row under a horizontal place, clamped; -1 without rows. @param {Across} place @param {number} x */
export function rowUnder(place, x) {
  if (!place.count) return -1;
  return Math.max(0, Math.min(place.count - 1, Math.floor((x - place.left) / place.step)));
}

/** Greatest value of some curves, at least `least`. @param {Curve[]} curves @param {number} least */
export function highest(curves, least) {
  let most = least;
  for (const curve of curves) for (const value of curve) if (value !== null && value > most) most = value;
  return most;
}

/** Round steps below a maximum for the scale. @param {number} max */
export function ticks(max) {
  if (!(max > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(max));
  const step = [0.5, 1, 2, 5].map((m) => m * power).find((s) => max / s < 5) ?? power * 5;
  const found = [];
  for (let k = 1; k * step <= max * 1.0001; k += 1) found.push(+(k * step).toPrecision(6));
  return found;
}

/**
 * Rows at which a turn begins and its number (1-based) is written, at least `room` pixels apart.
 * @param {number[]} turn @param {Across} place @param {number} [room]
 */
export function turnLabels(turn, place, room = 40) {
  const found = [];
  let last = -Infinity;
  for (let row = 0; row < turn.length; row += 1) {
    if (row && turn[row] === turn[row - 1]) continue;
    const x = xOf(place, row);
    const text = turn[row] + 1;
    if (x - last < room || (found.length && text % 5 && room > 0)) continue;
    found.push({ row, text: String(text) });
    last = x;
  }
  return found;
}

/** The next row that wanted to act in a direction, or the same. @param {number[][]} marks @param {number} row @param {number} way */
export function nextMark(marks, row, way) {
  const rows = marks.map((mark) => mark[0]).filter((at) => (way > 0 ? at > row : at < row));
  if (!rows.length) return row;
  return way > 0 ? Math.min(...rows) : Math.max(...rows);
}

/** Values with one place changed, kept from 0 to 1. @param {number[]} values @param {number} at @param {number} value */
export function withLoad(values, at, value) {
  const next = values.slice();
  next[at] = Math.round(Math.max(0, Math.min(1, value)) * 1000) / 1000;
  return next;
}

/** Longer or shorter by some turns, the last one repeated. @param {number[]} values @param {number} more */
export function withTurns(values, more) {
  const size = Math.max(2, Math.min(MOST_TURNS, values.length + more));
  const last = values.length ? values[values.length - 1] : 0;
  return Array.from({ length: size }, (_, i) => values[i] ?? last);
}

// ------------------------------------------------------------------------------------- drawing

/**
 * @param {CanvasRenderingContext2D} pen @param {Curve} curve @param {Across} place @param {(value: number) => number} y
 */
function trace(pen, curve, place, y) {
  let open = false;
  pen.beginPath();
  curve.forEach((value, row) => {
    if (value === null) {
      open = false;
      return;
    }
    const x = xOf(place, row);
    if (open) pen.lineTo(x, y(value));
    else pen.moveTo(x, y(value));
    open = true;
  });
  pen.stroke();
}

/**
 * @param {CanvasRenderingContext2D} pen @param {Chart} data @param {Across} place @param {Ink} ink @param {number} height
 */
function drawPressure(pen, data, place, ink, height) {
  const top = 14;
  const base = height - 6;
  const max = highest([data.pressure, data.capacity, data.other?.pressure ?? []], 1) * 1.08;
  /** @param {number} value */
  const y = (value) => base - (Math.max(0, value) / max) * (base - top);
  pen.font = ink.font;
  pen.textBaseline = "middle";
  for (const tick of ticks(max)) {
    pen.fillStyle = ink.line;
    pen.fillRect(place.left, Math.round(y(tick)), place.right - place.left, 1);
    pen.fillStyle = ink.muted;
    pen.textAlign = "right";
    pen.fillText(String(tick), place.left - 6, y(tick));
  }
  // Negative slack: hatched, so that it shows without colour too.
  pen.save();
  pen.beginPath();
  data.pressure.forEach((value, row) => {
    const limit = data.capacity[row];
    if (value === null || limit === null || value <= limit) return;
    pen.rect(xOf(place, row) - place.step / 2, y(value), Math.max(1, place.step), y(limit) - y(value));
  });
  pen.clip();
  pen.strokeStyle = ink.act;
  pen.globalAlpha = 0.55;
  pen.lineWidth = 1.2;
  pen.beginPath();
  for (let x = place.left - height; x < place.right; x += 6) {
    pen.moveTo(x, base);
    pen.lineTo(x + height, base - height);
  }
  pen.stroke();
  pen.restore();
  if (data.other) {
    pen.strokeStyle = ink.muted;
    pen.lineWidth = 1.2;
    pen.setLineDash([2, 3]);
    trace(pen, data.other.pressure, place, y);
  }
  pen.strokeStyle = ink.capacity;
  pen.lineWidth = 2;
  pen.setLineDash([7, 4]);
  trace(pen, data.capacity, place, y);
  pen.setLineDash([]);
  pen.strokeStyle = ink.pressure;
  trace(pen, data.pressure, place, y);
  pen.fillStyle = ink.fg;
  pen.fillRect(place.left, base, place.right - place.left, 1);
  sideTitle(pen, "bits", ink, top - 6);
}

/** @param {CanvasRenderingContext2D} pen @param {string} text @param {Ink} ink @param {number} y */
function sideTitle(pen, text, ink, y) {
  pen.fillStyle = ink.muted;
  pen.textAlign = "right";
  pen.fillText(text, LEFT_PX - 6, y);
}

/**
 * @param {CanvasRenderingContext2D} pen @param {Chart} data @param {Across} place @param {Ink} ink @param {number} height
 */
function drawRisk(pen, data, place, ink, height) {
  const top = 14;
  const base = height - AXIS_PX - LANES.length * LANE_PX - 8;
  /** @param {number} value */
  const y = (value) => base - value * (base - top);
  const width = place.right - place.left;
  pen.font = ink.font;
  pen.textBaseline = "middle";
  const medium = Math.max(data.low, data.medium);
  pen.fillStyle = ink.medium;
  pen.fillRect(place.left, y(medium), width, y(data.low) - y(medium));
  pen.fillStyle = ink.high;
  pen.fillRect(place.left, y(1), width, y(medium) - y(1));
  pen.textAlign = "right";
  for (const tick of [0, 0.5, 1]) {
    pen.fillStyle = ink.muted;
    pen.fillText(String(tick), place.left - 6, y(tick));
  }
  for (const [value, dash] of /** @type {[number, number[]][]} */ ([[data.low, [6, 3]], [data.medium, [2, 3]]])) {
    pen.strokeStyle = ink.edge;
    pen.lineWidth = 1;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(place.left, Math.round(y(value)) + 0.5);
    pen.lineTo(place.right, Math.round(y(value)) + 0.5);
    pen.stroke();
  }
  if (data.other) {
    pen.strokeStyle = ink.muted;
    pen.lineWidth = 1.2;
    pen.setLineDash([2, 3]);
    trace(pen, data.other.p_fail, place, y);
  }
  pen.setLineDash([]);
  pen.strokeStyle = ink.risk;
  pen.lineWidth = 2;
  trace(pen, data.p_fail, place, y);
  pen.fillStyle = ink.fg;
  pen.fillRect(place.left, base, width, 1);
  pen.textAlign = "left";
  pen.fillStyle = ink.muted;
  const names = /** @type {[string, number, number][]} */ ([
    ["high", medium, 1], ["medium", data.low, medium], ["low", 0, data.low],
  ]);
  for (const [name, from, to] of names) {
    if (y(from) - y(to) >= 11) pen.fillText(name, place.left + 5, (y(from) + y(to)) / 2);
  }
  sideTitle(pen, "p_fail", ink, top + (base - top) / 4);
  drawMarks(pen, data, place, ink, base + 8);
  pen.textAlign = "center";
  pen.fillStyle = ink.muted;
  for (const label of turnLabels(data.turn, place)) {
    pen.fillText(label.text, xOf(place, label.row), height - AXIS_PX / 2 + 2);
  }
  sideTitle(pen, "turn", ink, height - AXIS_PX / 2 + 2);
}

/** @param {CanvasRenderingContext2D} pen @param {Chart} data @param {Across} place @param {Ink} ink @param {number} top */
function drawMarks(pen, data, place, ink, top) {
  LANES.forEach((name, lane) => {
    const y = top + lane * LANE_PX + LANE_PX / 2;
    pen.fillStyle = ink.line;
    pen.fillRect(place.left, y, place.right - place.left, 1);
    pen.fillStyle = ink.muted;
    pen.textAlign = "right";
    pen.fillText(name, place.left - 6, y);
  });
  const size = Math.max(2.5, Math.min(5.5, place.step * 0.9));
  for (const order of [2, 1, 0]) {
    for (const [row, kind, state] of data.marks) {
      if (state === order) drawMark(pen, kind, state, xOf(place, row), top + (kind - 0.5) * LANE_PX, size, ink);
    }
  }
}

/**
 * A refresh is a circle, a replay a triangle, a replan a square; done is filled, throttled hollow, and one that is
 * not carried out at this point of a turn a small stroke.
 * @param {CanvasRenderingContext2D} pen @param {number} kind @param {number} state @param {number} x @param {number} y
 * @param {number} size @param {Ink} ink
 */
function drawMark(pen, kind, state, x, y, size, ink) {
  pen.lineWidth = 1.4;
  pen.strokeStyle = state === 0 ? ink.bg : ink.act;
  pen.beginPath();
  if (state === 2) {
    pen.moveTo(x, y - 3);
    pen.lineTo(x, y + 3);
    pen.strokeStyle = ink.edge;
    pen.stroke();
    return;
  }
  const r = state === 0 ? size + 0.5 : size - 0.5;
  if (kind === 1) pen.arc(x, y, r, 0, Math.PI * 2);
  else if (kind === 2) {
    pen.moveTo(x, y - r);
    pen.lineTo(x + r, y + r * 0.8);
    pen.lineTo(x - r, y + r * 0.8);
    pen.closePath();
  } else pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  pen.fillStyle = state === 0 ? ink.act : ink.bg;
  pen.fill();
  pen.stroke();
}

/**
 * The loads of a drawn trajectory as columns.
 * @param {CanvasRenderingContext2D} pen @param {number[]} loads @param {number} at @param {Ink} ink @param {number} width
 */
function drawLoads(pen, loads, at, ink, width) {
  const place = across(loads.length, width);
  const base = DRAW_PX - 6;
  const room = base - 10;
  pen.font = ink.font;
  pen.textBaseline = "middle";
  pen.fillStyle = ink.card;
  pen.fillRect(place.left, 10, place.right - place.left, room);
  loads.forEach((load, turn) => {
    const x = place.left + turn * place.step;
    pen.fillStyle = turn === at ? ink.fg : ink.pressure;
    const tall = Math.max(2, load * room);
    pen.fillRect(x, base - tall, Math.max(1, place.step - (place.step > 4 ? 1 : 0)), tall);
  });
  pen.textAlign = "right";
  pen.fillStyle = ink.muted;
  pen.fillText("1", place.left - 6, 10);
  pen.fillText("load", place.left - 6, 10 + room / 2);
  pen.fillText("0", place.left - 6, base);
}

// ------------------------------------------------------------------------------------- helpers

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

/**
 * Sizes a canvas in device pixels and returns a cleared context that draws in CSS pixels.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
function freshPen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.height = `${height}px`;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** @param {HTMLSelectElement} select @param {Choice[]} choices @param {string} value */
function fillSelect(select, choices, value) {
  const print = JSON.stringify(choices);
  if (select.dataset.choices !== print) {
    select.dataset.choices = print;
    select.replaceChildren(
      ...choices.map((choice) => {
        const option = h("option", "", choice.label);
        option.value = choice.value;
        return option;
      }),
    );
  }
  if (select.value !== value) select.value = value;
}

/**
 * A table with a heading row; cells are text, or elements as they are.
 * @param {HTMLTableElement} table @param {string[]} heads @param {(string | HTMLElement)[][]} rows
 */
function fillTable(table, heads, rows) {
  const head = h("tr");
  for (const name of heads) {
    const cell = name ? h("th", "", name) : h("td");
    if (name) setAttr(cell, "scope", "col");
    head.append(cell);
  }
  const body = rows.map((row) => {
    const line = h("tr");
    row.forEach((item, index) => {
      const cell = h(index ? "td" : "th");
      if (!index) /** @type {HTMLTableCellElement} */ (cell).scope = "row";
      if (typeof item === "string") cell.textContent = visibleText(item);
      else cell.append(item);
      line.append(cell);
    });
    return line;
  });
  const parts = [h("thead"), h("tbody")];
  parts[0].append(head);
  parts[1].append(...body);
  table.replaceChildren(...parts);
}

/** A bar from the middle for a signed value. @param {number} value @param {number} most */
function bar(value, most) {
  const box = h("span", "cap-bar");
  box.setAttribute("aria-hidden", "true");
  const inner = h("span", value < 0 ? "cap-less" : "cap-more");
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) * 50 : 0;
  inner.style.width = `${share}%`;
  inner.style.left = `${value < 0 ? 50 - share : 50}%`;
  box.append(inner);
  return box;
}

/** @param {HTMLElement} root */
function themeOf(root) {
  const lab = root.closest("[data-jp-theme-light]") ?? document.querySelector("[data-jp-theme-light]");
  if (lab) return lab.getAttribute("data-jp-theme-light") === "false" ? "dark" : "light";
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Colours as the style sheet has them. @param {HTMLElement} root @returns {Ink} */
function readInk(root) {
  const style = getComputedStyle(root);
  /** @param {string} name */
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  // A custom property may refer to another one; only a real property is resolved to a colour.
  const probe = h("span");
  probe.style.color = "var(--fg)";
  probe.style.backgroundColor = "var(--bg)";
  probe.hidden = true;
  root.append(probe);
  const seen = getComputedStyle(probe);
  const ink = {
    fg: seen.color, bg: seen.backgroundColor, muted: get("muted"), line: get("line"), edge: get("edge"),
    card: get("field"), pressure: get("pressure"), capacity: get("capacity"), risk: get("risk"), act: get("act"),
    medium: get("medium"), high: get("high"), font: `11px ${style.fontFamily}`,
  };
  probe.remove();
  return ink;
}

// ---------------------------------------------------------------------------------------- view

/**
 * What every part of the view shares.
 * @typedef {object} Desk
 * @property {Model} model
 * @property {AbortSignal} signal
 * @property {<A extends unknown[]>(fn: (...args: A) => void) => (...args: A) => void} guard
 * @property {() => Ink} ink
 * @property {() => void} changed asks for one redraw in the next frame
 * @property {() => number} number the next number of the rising series
 * @property {(action: string, value?: string) => void} ask
 * @property {string} id for element ids
 */

/** @param {Desk} desk @param {EventTarget} target @param {string} type @param {(event: any) => void} fn */
function on(desk, target, type, fn) {
  target.addEventListener(type, desk.guard(fn), { signal: desk.signal });
}

/** @param {Desk} desk */
function buildHead(desk) {
  const box = h("div", "cap-head");
  const title = h("h2");
  const source = h("select");
  source.setAttribute("aria-label", "Source");
  const model = h("select");
  model.setAttribute("aria-label", "Model");
  const compare = h("input");
  compare.type = "checkbox";
  const compareBox = h("label", "cap-check");
  compareBox.append(compare, h("span", "", "compare with the reference"));
  const reset = h("button", "", "Reset all");
  reset.type = "button";
  const figures = h("div", "cap-figures");
  const what = h("div", "cap-what");
  what.append(title, source, model, compareBox, reset);
  box.append(what, figures);
  on(desk, source, "change", () => desk.ask("source", source.value));
  on(desk, model, "change", () => desk.ask("model", model.value));
  on(desk, compare, "change", () => desk.ask("compare", compare.checked ? "on" : "off"));
  on(desk, reset, "click", () => desk.ask("reset"));
  return {
    box,
    draw() {
      const head = desk.model.get("head");
      setText(title, head.title);
      fillSelect(source, head.sources, head.source);
      fillSelect(model, head.models, head.model);
      compare.checked = head.compare;
      setAttr(reset, "aria-disabled", String(!head.changed.length));
      figures.replaceChildren(
        ...head.figures.map((figure) => {
          const box = h("div", "cap-fig");
          box.append(h("b", "", figure.value), h("span", "", figure.label));
          return box;
        }),
      );
    },
  };
}

/** @param {Desk} desk */
function buildChart(desk) {
  const box = h("section", "cap-card cap-chartbox");
  const chart = h("div", "cap-chart");
  chart.tabIndex = 0;
  chart.setAttribute("role", "slider");
  chart.setAttribute("aria-label", "Observation");
  chart.setAttribute("aria-valuemin", "1");
  const canvases = [h("canvas"), h("canvas")];
  for (const canvas of canvases) canvas.setAttribute("aria-hidden", "true");
  const cursor = h("div", "cap-cursor");
  const tip = h("div", "cap-tip");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  chart.append(...canvases, cursor, tip);
  const legend = buildLegend();
  box.append(chart, legend.box);
  let place = across(0, 1);

  const rows = () => desk.model.get("chart").turn.length;
  /** @param {number} row */
  const go = (row) => {
    const kept = Math.max(0, Math.min(rows() - 1, row));
    if (kept === desk.model.get("selected")) return;
    desk.model.set("selected", kept);
    desk.model.save_changes();
    desk.changed();
  };
  /** @param {MouseEvent} event */
  const under = (event) => rowUnder(place, event.clientX - chart.getBoundingClientRect().left);
  on(desk, chart, "pointerdown", (/** @type {PointerEvent} */ event) => {
    chart.setPointerCapture(event.pointerId);
    go(under(event));
  });
  on(desk, chart, "pointermove", (/** @type {PointerEvent} */ event) => {
    const row = under(event);
    if (event.buttons & 1) go(row);
    const data = desk.model.get("chart");
    tip.hidden = row < 0;
    if (row < 0) return;
    const after = data.post[row] ? "after its tools" : "before its request";
    const p = data.p_fail[row];
    setText(tip, `turn ${data.turn[row] + 1} ${after} · p_fail ${p === null ? "unknown" : p.toFixed(3)}`);
    const left = Math.min(chart.clientWidth - tip.offsetWidth - 4, Math.max(4, xOf(place, row) + 8));
    tip.style.left = `${left}px`;
  });
  on(desk, chart, "pointerleave", () => {
    tip.hidden = true;
  });
  on(desk, chart, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = desk.model.get("selected");
    const marks = desk.model.get("chart").marks;
    const jump = event.shiftKey;
    /** @type {Record<string, number>} */
    const to = {
      ArrowLeft: jump ? nextMark(marks, row, -1) : row - 1,
      ArrowDown: row - 1,
      ArrowRight: jump ? nextMark(marks, row, 1) : row + 1,
      ArrowUp: row + 1,
      PageDown: row - 10, PageUp: row + 10, Home: 0, End: rows() - 1,
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    go(to[event.key]);
  });

  return {
    box,
    draw() {
      const data = desk.model.get("chart");
      const ink = desk.ink();
      const width = chart.clientWidth;
      place = across(rows(), width);
      drawPressure(freshPen(canvases[0], width, PRESSURE_PX), data, place, ink, PRESSURE_PX);
      const height = RISK_PX + LANES.length * LANE_PX + AXIS_PX;
      drawRisk(freshPen(canvases[1], width, height), data, place, ink, height);
      legend.draw(ink, Boolean(data.other));
    },
    drawCursor() {
      const row = Math.min(desk.model.get("selected"), rows() - 1);
      cursor.hidden = row < 0;
      cursor.style.left = `${xOf(place, row)}px`;
      const detail = desk.model.get("detail");
      setAttr(chart, "aria-valuemax", String(Math.max(1, rows())));
      setAttr(chart, "aria-valuenow", String(row + 1));
      const known = detail.row === row;
      setAttr(chart, "aria-valuetext", known ? visibleText(`${detail.title}, p_fail ${detail.p_text}, ${detail.band}`) : `observation ${row + 1}`);
    },
  };
}

/** Line and mark samples with their names. */
function buildLegend() {
  const box = h("ul", "cap-legend");
  box.setAttribute("aria-label", "Legend");
  /** @type {[string, (pen: CanvasRenderingContext2D, ink: Ink) => void][]} */
  const lines = [
    ["pressure h_hat", (pen, ink) => stroke(pen, ink.pressure, [])],
    ["capacity c_hat", (pen, ink) => stroke(pen, ink.capacity, [7, 4])],
    ["p_fail", (pen, ink) => stroke(pen, ink.risk, [])],
    ["the reference's", (pen, ink) => stroke(pen, ink.muted, [2, 3])],
    ...STATES.map((name, state) => /** @type {[string, (pen: CanvasRenderingContext2D, ink: Ink) => void]} */ ([
      name, (pen, ink) => drawMark(pen, 3, state, 12, 7, 5, ink),
    ])),
  ];
  const items = lines.map(([name]) => {
    const item = h("li");
    const canvas = h("canvas");
    canvas.setAttribute("aria-hidden", "true");
    canvas.style.width = "24px";
    item.append(canvas, h("span", "", name));
    return item;
  });
  box.append(...items, h("li", "cap-hint", "hatched: negative slack · arrow keys walk, with Shift from wish to wish"));
  return {
    box,
    /** @param {Ink} ink @param {boolean} compared */
    draw(ink, compared) {
      items[3].hidden = !compared;
      lines.forEach(([, paint], index) => {
        paint(freshPen(/** @type {HTMLCanvasElement} */ (items[index].firstChild), 24, 14), ink);
      });
    },
  };
}

/** @param {CanvasRenderingContext2D} pen @param {string} color @param {number[]} dash */
function stroke(pen, color, dash) {
  pen.strokeStyle = color;
  pen.lineWidth = 2;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(0, 7);
  pen.lineTo(24, 7);
  pen.stroke();
}

/** @param {Desk} desk */
function buildDrawing(desk) {
  const box = h("section", "cap-card");
  const hint = h("p", "cap-muted", "Draw the load of each turn with the pointer, or choose a turn with ← → and change it with ↑ ↓.");
  const pad = h("div", "cap-pad");
  pad.tabIndex = 0;
  pad.setAttribute("role", "slider");
  pad.setAttribute("aria-label", "Load of the chosen turn");
  pad.setAttribute("aria-valuemin", "0");
  pad.setAttribute("aria-valuemax", "1");
  const canvas = h("canvas");
  canvas.setAttribute("aria-hidden", "true");
  pad.append(canvas);
  const more = h("button", "", `${TURNS_STEP} turns more`);
  const less = h("button", "", `${TURNS_STEP} turns fewer`);
  for (const button of [more, less]) button.type = "button";
  const bar = h("div", "cap-bar-row");
  bar.append(more, less);
  box.append(hint, pad, bar);
  /** @type {number[] | null} */
  let local = null;
  let sent = 0;
  let at = 0;
  let last = -1;

  const values = () => local ?? desk.model.get("loads").values;
  /** @param {number[]} next */
  const send = (next) => {
    local = next;
    sent = desk.number();
    desk.model.set("loads", { seq: sent, values: next });
    desk.model.save_changes();
    desk.changed();
  };
  /** @param {PointerEvent} event */
  const paint = (event) => {
    const box = pad.getBoundingClientRect();
    const now = values();
    const turn = rowUnder(across(now.length, pad.clientWidth), event.clientX - box.left);
    const load = 1 - (event.clientY - box.top - 10) / (DRAW_PX - 16);
    if (turn < 0) return;
    let next = now;
    // A quick stroke skips turns: those between get the new load as well.
    const from = last < 0 ? turn : last;
    for (let k = Math.min(from, turn); k <= Math.max(from, turn); k += 1) if (k !== from || k === turn) next = withLoad(next, k, load);
    last = turn;
    at = turn;
    send(next);
  };
  on(desk, pad, "pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    last = -1;
    paint(event);
  });
  on(desk, pad, "pointermove", (event) => {
    if (event.buttons & 1) paint(event);
  });
  on(desk, pad, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const now = values();
    const step = { ArrowUp: LOAD_STEP, ArrowDown: -LOAD_STEP }[event.key];
    /** @type {Record<string, number>} */
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: now.length - 1 };
    if (step !== undefined) send(withLoad(now, at, now[at] + step));
    else if (event.key in to) at = Math.max(0, Math.min(now.length - 1, to[event.key]));
    else return;
    event.preventDefault();
    desk.changed();
  });
  on(desk, more, "click", () => send(withTurns(values(), TURNS_STEP)));
  on(desk, less, "click", () => send(withTurns(values(), -TURNS_STEP)));
  return {
    box,
    draw() {
      box.hidden = !desk.model.get("head").drawing;
      if (box.hidden) return;
      if (local && desk.model.get("ack") >= sent) local = null;
      const now = values();
      at = Math.max(0, Math.min(now.length - 1, at));
      drawLoads(freshPen(canvas, pad.clientWidth, DRAW_PX), now, at, desk.ink(), pad.clientWidth);
      const load = now[at] ?? 0;
      setAttr(pad, "aria-valuenow", String(load));
      setAttr(pad, "aria-valuetext", `turn ${at + 1} of ${now.length}, load ${load.toFixed(2)}`);
    },
  };
}

/** @param {Desk} desk */
function buildDetail(desk) {
  const box = h("section", "cap-card cap-detail");
  const head = h("div", "cap-line");
  const title = h("h3");
  const place = h("span", "cap-muted cap-place");
  const p = h("b", "cap-p");
  const band = h("span", "cap-band");
  const other = h("span", "cap-muted");
  head.append(title, place, h("span", "cap-space"), h("span", "cap-muted", "p_fail"), p, band, other);
  const why = h("p", "cap-why");
  const moved = h("p", "cap-moved");
  const pressure = h("table");
  const risk = h("table");
  const sides = h("div", "cap-sides");
  const left = h("div");
  const right = h("div");
  left.append(h("h4", "", "Pressure against capacity, in bits"), scrolled(pressure, "Pressure, term by term"));
  right.append(h("h4", "", "What makes p_fail"), scrolled(risk, "p_fail, term by term"));
  sides.append(left, right);
  box.append(head, why, moved, sides);
  return {
    box,
    draw() {
      const d = desk.model.get("detail");
      setText(title, d.title);
      setText(place, d.place);
      setText(p, d.p_text);
      setText(band, d.band);
      setAttr(band, "data-band", d.band);
      setText(other, d.p_other_text);
      setText(why, d.why);
      setText(moved, d.moved);
      const most = Math.max(0.01, ...d.h_rows.map((row) => row.value));
      fillTable(pressure, ["term", "seen", "weight × bits", "", "bits"], [
        ...d.h_rows.map((row) => [row.name, row.fact, row.sum, bar(row.value, most), row.text]),
        ["pressure h_hat", "", "", "", d.h_text],
        ["capacity c_hat", "", "", "", d.c_text],
        ["slack", "", "", "", d.slack_text],
      ]);
      const far = Math.max(0.01, ...d.z_rows.map((row) => Math.abs(row.value)));
      const compared = d.z_rows.some((row) => row.other);
      fillTable(risk, ["term", "coefficient × value", "", "z", "since before", ...(compared ? ["reference"] : [])], [
        ...d.z_rows.map((row) => [
          row.name, row.sum, bar(row.value, far), row.text, row.change, ...(compared ? [row.other] : []),
        ]),
        ["z", "", "", d.z_text, "", ...(compared ? [""] : [])],
      ]);
    },
  };
}

/** A table that scrolls sideways by itself where room is short. @param {HTMLTableElement} table @param {string} name */
function scrolled(table, name) {
  table.setAttribute("aria-label", name);
  const box = h("div", "cap-scroll");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", name);
  box.append(table);
  return box;
}

/** @param {Desk} desk */
function buildCosts(desk) {
  const box = h("section", "cap-card cap-costs");
  const title = h("h3", "", "What it costs");
  const sentence = h("p", "cap-sentence");
  const bills = h("table");
  const items = h("table");
  const list = scrolled(bills, "Bills");
  const each = scrolled(items, "Interventions");
  const notes = h("div");
  box.append(title, sentence, list, each, notes);
  return {
    box,
    draw() {
      const costs = desk.model.get("costs");
      setAttr(box, "aria-busy", String(costs.state === "working"));
      setText(title, costs.state === "working" ? "What it costs (working it out …)" : "What it costs");
      setText(sentence, costs.sentence);
      list.hidden = !costs.rows.length;
      fillTable(bills, ["session", "bill", "against off", "input tokens", "interventions"], costs.rows.map((row) => {
        const change = h("span", row.tone ? `cap-${row.tone}` : "", row.change_text);
        return [row.name, row.cost_text, change, row.tokens_text, row.count_text];
      }));
      each.hidden = !costs.items.length;
      fillTable(items, ["at", "what", "repaid tokens", "saved tokens", "net", "pays back"], costs.items.map((row) => {
        const net = h("span", row.tone ? `cap-${row.tone}` : "", row.net_text);
        return [row.turn_text, row.action_text, row.repaid_text, row.saved_text, net, row.pays_text];
      }));
      notes.replaceChildren(...costs.notes.map((note) => h("p", "cap-muted", note)));
    },
  };
}

/** @param {Desk} desk */
function buildControls(desk) {
  const box = h("div", "cap-controls");
  /** @type {Map<string, {setting: Setting, show: (value: Value, changed: boolean, wrong: boolean) => void}>} */
  const rows = new Map();
  /** @type {Map<string, {value: Value, seq: number}>} */
  const local = new Map();
  let built = "";

  /** @param {string} name @param {Value} value */
  const send = (name, value) => {
    const seq = desk.number();
    local.set(name, { value, seq });
    /** @type {Record<string, Value>} */
    const values = { ...desk.model.get("values") };
    for (const [key, entry] of local) values[key] = entry.value;
    desk.model.set("asked", { seq, values });
    desk.model.save_changes();
    desk.changed();
  };
  /** @param {Setting} setting @param {string} id */
  const row = (setting, id) => {
    const line = h("div", "cap-row");
    line.dataset.name = setting.name;
    line.title = `${setting.help} The reference has ${setting.default_text}.`;
    const name = h("label", "cap-name", setting.label);
    name.htmlFor = id;
    const back = h("button", "cap-back", "↺");
    back.type = "button";
    back.setAttribute("aria-label", `Reset ${setting.label} to ${setting.default_text}`);
    on(desk, back, "click", () => {
      local.delete(setting.name);
      desk.ask("reset", setting.name);
    });
    const input = inputOf(setting, id);
    line.append(name, ...input.parts, back);
    rows.set(setting.name, {
      setting,
      show(value, changed, wrong) {
        back.classList.toggle("cap-gone", !changed);
        back.disabled = !changed;
        input.show(value, wrong);
      },
    });
    return line;
  };
  /** @param {Setting} setting @param {string} id @returns {{parts: HTMLElement[], show: (value: Value, wrong: boolean) => void}} */
  const inputOf = (setting, id) => {
    if (setting.kind === "switch") {
      const check = h("input");
      check.type = "checkbox";
      check.id = id;
      on(desk, check, "change", () => send(setting.name, check.checked));
      return { parts: [check, h("span")], show: (value) => void (check.checked = Boolean(value)) };
    }
    if (setting.kind === "choice") {
      const select = h("select", "cap-wide");
      select.id = id;
      on(desk, select, "change", () => send(setting.name, select.value));
      return { parts: [select], show: (value) => fillSelect(select, setting.choices, String(value)) };
    }
    const range = h("input");
    range.type = "range";
    range.min = String(setting.low);
    range.max = String(setting.high);
    range.step = String(setting.step);
    range.setAttribute("aria-label", setting.label);
    const field = h("input");
    field.type = "number";
    field.step = "any";
    field.id = id;
    field.setAttribute("aria-label", `${setting.label}, exact`);
    on(desk, range, "input", () => send(setting.name, range.valueAsNumber));
    on(desk, field, "input", () => {
      if (field.value !== "" && Number.isFinite(field.valueAsNumber)) send(setting.name, field.valueAsNumber);
    });
    on(desk, field, "blur", () => desk.changed());
    return {
      parts: [range, field],
      show(value, wrong) {
        range.value = String(value);
        const busy = field.matches(":focus");
        if (!busy && field.value !== String(value)) field.value = String(value);
        setAttr(field, "aria-invalid", String(busy && wrong));
      },
    };
  };
  const build = () => {
    const groups = desk.model.get("groups");
    const print = JSON.stringify(groups);
    if (print === built) return;
    built = print;
    rows.clear();
    box.replaceChildren(
      ...groups.map((group, g) => {
        const part = h("details", "cap-group");
        part.open = g < 3;
        const lines = group.rows.map((setting, k) => row(setting, `${desk.id}-${g}-${k}`));
        part.append(h("summary", "", group.title), ...lines);
        return part;
      }),
    );
  };
  return {
    box,
    draw() {
      build();
      const values = desk.model.get("values");
      const changed = new Set(desk.model.get("head").changed);
      const ack = desk.model.get("ack");
      for (const [name, entry] of rows) {
        const own = local.get(name);
        const heard = own !== undefined && ack >= own.seq;
        const wrong = heard && own.value !== values[name];
        if (heard && !wrong) local.delete(name);
        entry.show(own && !heard ? own.value : values[name], changed.has(name), wrong);
        // A refused value is forgotten, so that the next change does not send it again.
        if (wrong) own.value = values[name];
      }
    },
  };
}

/** @param {Desk} desk */
function buildFoot(desk) {
  const error = h("p", "cap-error");
  error.setAttribute("role", "alert");
  error.hidden = true;
  const toml = h("details", "cap-card cap-toml");
  const text = h("textarea");
  text.readOnly = true;
  text.rows = 18;
  text.setAttribute("aria-label", "Settings as a capacity table");
  toml.append(h("summary", "", "These settings as [capacity]"), text);
  const notes = h("div", "cap-notes");
  const live = h("p", "cap-hear");
  live.setAttribute("role", "status");
  /** @param {string} message */
  const show = (message) => {
    setText(error, message);
    error.hidden = !message;
  };
  return {
    error,
    parts: [toml, notes, live],
    fail: show,
    draw() {
      const head = desk.model.get("head");
      if (text.value !== head.toml) text.value = head.toml;
      notes.replaceChildren(...head.notes.map((note) => h("span", "", note)));
      show(desk.model.get("error"));
      setText(live, desk.model.get("announce"));
    },
  };
}

let widgets = 0;

/** @param {{model: Model, el: HTMLElement}} context */
function render({ model, el }) {
  const stop = new AbortController();
  const root = h("div", "cscap");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Capacity lab");
  // JupyterLab would take the arrow keys away from the sliders; what it needs (Escape, shortcuts with keys held) goes on.
  root.addEventListener("keydown", (event) => {
    if (WALK_KEYS.has(event.key) && !event.altKey && !event.ctrlKey && !event.metaKey) event.stopPropagation();
  }, { signal: stop.signal });
  // JupyterLab listens on the field itself and would forbid line breaks and undo in it.
  root.addEventListener("beforeinput", (event) => event.stopPropagation(), { capture: true, signal: stop.signal });
  /** @type {Ink | null} */
  let ink = null;
  let frame = 0;
  let looks = 0;
  let timer = 0;
  let last = Math.max(model.get("ack"), model.get("asked").seq, model.get("loads").seq, model.get("request").seq);
  widgets += 1;

  /** @type {Desk["guard"]} */
  const guard = (fn) => (...args) => {
    try {
      fn(...args);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      foot.fail(`The view met an error: ${message}. Run the cell again to draw it afresh.`);
      console.error(error);
    }
  };
  const changed = () => {
    if (!frame) frame = requestAnimationFrame(flush);
  };
  /** @type {Desk} */
  const desk = {
    model, guard, changed,
    signal: stop.signal,
    id: `cscap-${widgets}`,
    ink: () => (ink ??= readInk(root)),
    number: () => (last = Math.max(last, model.get("ack")) + 1),
    ask(action, value = "") {
      model.set("request", { seq: desk.number(), action, value });
      model.save_changes();
    },
  };
  const head = buildHead(desk);
  const chart = buildChart(desk);
  const drawing = buildDrawing(desk);
  const detail = buildDetail(desk);
  const costs = buildCosts(desk);
  const controls = buildControls(desk);
  const foot = buildFoot(desk);
  const main = h("div", "cap-main");
  main.append(foot.error, drawing.box, chart.box, detail.box, costs.box);
  const grid = h("div", "cap-grid");
  grid.append(main, controls.box);
  root.append(head.box, grid, ...foot.parts);

  const draw = guard(() => {
    for (const part of [head, controls, drawing, chart, detail, costs, foot]) part.draw();
    chart.drawCursor();
  });
  const flush = () => {
    frame = 0;
    // Out of sight nothing can be measured; JupyterLab hides the page for a moment when it changes the theme.
    if (!root.isConnected || root.clientWidth === 0) {
      if (looks < HIDDEN_LOOKS) timer = setTimeout(changed, HIDDEN_WAIT_MS);
      looks += 1;
      return;
    }
    looks = 0;
    draw();
    root.dataset.ack = String(model.get("ack"));
    root.dataset.ready = "1";
  };
  const traits = /** @type {(keyof State & string)[]} */ ([
    "head", "groups", "values", "chart", "detail", "costs", "selected", "loads", "announce", "error", "ack",
  ]);
  for (const trait of traits) {
    model.on(`change:${trait}`, changed);
    stop.signal.addEventListener("abort", () => model.off(`change:${trait}`, changed));
  }
  const relook = guard(() => {
    root.dataset.theme = themeOf(root);
    ink = null;
    changed();
  });
  const themes = new MutationObserver(relook);
  for (const node of [document.documentElement, document.body]) {
    themes.observe(node, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", relook, { signal: stop.signal });
  const sizes = new ResizeObserver(guard(changed));
  sizes.observe(root);
  el.append(root);
  relook();
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
