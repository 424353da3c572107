// @ts-check
/**
 * The section-order board. Python computes; this file draws, and reports what a person does.
 *
 * Every number for people arrives as ready text, every integer is used for proportions only. All text may come
 * from a stranger's log: it reaches the page as textContent, value or an attribute, never as markup. One plain
 * module without imports, because an inlined widget module cannot have neighbours.
 *
 * Order: types, text, geometry, small tools, talking to Python, then the view from top to bottom.
 */

/** @typedef {{value: string, label: string}} Choice */
/**
 * @typedef {object} Head
 * @property {string} title
 * @property {string} subtitle
 * @property {{value: string, label: string, tone: string}[]} figures
 * @property {string} a_day_text
 * @property {boolean} can_undo
 * @property {boolean} can_redo
 * @property {boolean} changed
 * @property {string[]} rewrites
 * @property {string[]} notes
 * @property {boolean} has_session
 * @property {boolean} has_bench
 */
/**
 * @typedef {object} Sections columns by section number
 * @property {string[]} name
 * @property {number[]} tokens
 * @property {string[]} tokens_text
 * @property {number[]} rate 0 (never changes) to 4 (volatile)
 * @property {string[]} rate_text
 * @property {string[]} badge
 * @property {boolean[]} fixed
 * @property {string[]} label
 */
/**
 * @typedef {object} Shown
 * @property {number[]} order section numbers in prompt order
 * @property {number[]} locked
 * @property {string[]} marks by section number
 * @property {number | null} boundary place before which the dynamic boundary lies
 * @property {number[]} survival per mille, behind each place
 * @property {{tokens: number[], survival: number[]}} today
 * @property {string} moving
 */
/**
 * @typedef {object} Detail
 * @property {string} name
 * @property {string[]} facts
 * @property {string} rate_text
 * @property {boolean} by_hand
 * @property {boolean} locked
 * @property {boolean} can_split
 * @property {boolean} can_turn
 * @property {Choice[]} grains
 * @property {{first: string, second: string, text: string}[]} before
 * @property {string[]} choices
 */
/** @typedef {{key: string, name: string, note: string, cells: string[], tone: string, usable: boolean}} TableRow */
/** @typedef {{columns: string[], rows: TableRow[], can_find: boolean}} Table */
/** @typedef {{models: string[], model: string, title: string, lines: string[]}} Plan */
/** @typedef {{kind: string, text: string, kinds: Choice[]}} Export */
/** @typedef {{action: string, name?: string, value?: string, to?: number}} Command */
/**
 * @typedef {object} State
 * @property {Head} head
 * @property {Sections} sections
 * @property {Shown} shown
 * @property {Detail} detail
 * @property {Table} table
 * @property {Plan} plan
 * @property {Export} export
 * @property {Command & {seq: number}} request
 * @property {string} announce
 * @property {string} error
 * @property {number} ack
 */
/** @typedef {import("@anywidget/types").AnyModel<State>} Model */
/** @typedef {"head" | "sections" | "shown" | "detail" | "table" | "plan" | "export" | "announce" | "error" | "ack" | "look"} Part */
/**
 * The part of a 2D context that the drawing functions use; a recording fake is enough to test them.
 * @typedef {Pick<CanvasRenderingContext2D, "fillStyle" | "strokeStyle" | "lineWidth" | "font" | "textAlign"
 *   | "textBaseline" | "fillRect" | "beginPath" | "moveTo" | "lineTo" | "stroke" | "fillText" | "setLineDash">} Pen
 */
/** @typedef {{fg: string, muted: string, line: string, bg: string, today: string, font: string}} Ink */

/** What the shades mean, from calm to volatile. */
export const RATE_TEXT = ["never changes", "rarely, below 2 %", "sometimes, below 10 %", "often, below 50 %", "mostly, from 50 %"];

const ROW_PX = 34;
const SEAM_PX = 18;
const LIST_PX = 460;
const EDGE_PX = 36;
const DRAG_FROM_PX = 4;
const CURVE_PX = 84;
const STRIP_PX = 26;
const LEFT_PX = 40;
const ANSWER_WAIT_MS = 5000;
const ANNOUNCE_MS = 250;
const HIDDEN_LOOKS = 20;
const HIDDEN_WAIT_MS = 150;

// ---------------------------------------------------------------------------------------- text

const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;

/**
 * One line of text in which characters that cannot be seen, or that reorder others, are spelled out.
 * @param {string} text
 * @param {number} [limit] characters kept before an ellipsis
 */
export function visibleText(text, limit = 400) {
  const cut = text.length > limit ? text.slice(0, limit) + "…" : text;
  return cut.replace(UNSEEN, (ch) => {
    const code = /** @type {number} */ (ch.codePointAt(0));
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  });
}

// ------------------------------------------------------------------------------------ geometry

/** Top of the row at a place; the dynamic boundary has a seam of its own. @param {number} place @param {number | null} boundary */
export function rowTop(place, boundary) {
  return place * ROW_PX + (boundary !== null && place >= boundary ? SEAM_PX : 0);
}

/** The place (0-based) under a height in the list, clamped. @param {number} y @param {number} count @param {number | null} boundary */
export function placeAt(y, count, boundary) {
  const seam = boundary !== null && y >= boundary * ROW_PX + SEAM_PX / 2 ? SEAM_PX : 0;
  return Math.max(0, Math.min(count - 1, Math.floor((y - seam) / ROW_PX)));
}

/**
 * The movable place for a place in the whole list: fixed sections stand at both ends.
 * @param {number[]} order
 * @param {boolean[]} fixed
 * @param {number} place
 */
export function movablePlace(order, fixed, place) {
  let front = 0;
  while (front < order.length && fixed[order[front]]) front += 1;
  const count = order.reduce((sum, section) => sum + (fixed[section] ? 0 : 1), 0);
  return Math.max(0, Math.min(count - 1, place - front));
}

/** Share of the widest block, in percent; something is seen of the smallest. @param {number} tokens @param {number} most */
export function blockWidth(tokens, most) {
  return most > 0 ? Math.max(0.8, (100 * tokens) / most) : 0;
}

/** Left edges of blocks true to scale, with the total at the end. @param {number[]} tokens @param {number} width */
export function blockEdges(tokens, width) {
  let total = 0;
  for (const value of tokens) total += value;
  const edges = [0];
  let sum = 0;
  for (const value of tokens) {
    sum += value;
    edges.push(total ? (sum / total) * width : 0);
  }
  return edges;
}

/**
 * The steps of a survival curve: before the first block nothing has changed.
 * @param {number[]} edges
 * @param {number[]} survival per mille
 * @param {number} top
 * @param {number} height
 * @returns {[number, number][]}
 */
export function curvePoints(edges, survival, top, height) {
  /** @type {[number, number][]} */
  const points = [];
  survival.forEach((mille, index) => {
    const y = top + height - (mille / 1000) * height;
    points.push([edges[index], y], [edges[index + 1], y]);
  });
  return points;
}

/**
 * @param {Pen} pen
 * @param {[number, number][]} points
 * @param {string} color
 * @param {number[]} dash
 * @param {number} shift
 */
function drawCurve(pen, points, color, dash, shift) {
  pen.strokeStyle = color;
  pen.lineWidth = dash.length ? 1.5 : 2.25;
  pen.setLineDash(dash);
  pen.beginPath();
  points.forEach(([x, y], index) => (index ? pen.lineTo(x + shift, y) : pen.moveTo(x + shift, y)));
  pen.stroke();
  pen.setLineDash([]);
}

/**
 * Both survival curves above the prompt true to scale.
 * @param {Pen} pen
 * @param {Shown} shown
 * @param {Sections} sections
 * @param {number} width
 * @param {(string | CanvasPattern)[]} fills by rate
 * @param {Ink} ink
 * @param {number} chosen section number, or -1
 */
export function drawPrompt(pen, shown, sections, width, fills, ink, chosen) {
  const plot = width - LEFT_PX;
  const tokens = shown.order.map((section) => sections.tokens[section]);
  const edges = blockEdges(tokens, plot);
  pen.font = ink.font;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const [share, text] of /** @type {[number, string][]} */ ([[1, "100 %"], [0.5, "50 %"], [0, "0 %"]])) {
    const y = 8 + CURVE_PX - share * CURVE_PX;
    pen.fillStyle = ink.line;
    pen.fillRect(LEFT_PX, y, plot, 1);
    pen.fillStyle = ink.muted;
    pen.fillText(text, LEFT_PX - 6, y);
  }
  drawCurve(pen, curvePoints(blockEdges(shown.today.tokens, plot), shown.today.survival, 8, CURVE_PX), ink.today, [5, 4], LEFT_PX);
  drawCurve(pen, curvePoints(edges, shown.survival, 8, CURVE_PX), ink.fg, [], LEFT_PX);
  const top = 8 + CURVE_PX + 8;
  shown.order.forEach((section, place) => {
    const left = LEFT_PX + edges[place];
    const wide = Math.max(1, edges[place + 1] - edges[place] - (edges[place + 1] - edges[place] > 4 ? 1 : 0));
    pen.fillStyle = fills[sections.rate[section]];
    pen.fillRect(left, top, wide, STRIP_PX);
    if (section === chosen) {
      pen.fillStyle = ink.fg;
      pen.fillRect(left, top + STRIP_PX + 2, wide, 3);
    }
  });
  if (shown.boundary !== null) {
    pen.fillStyle = ink.fg;
    for (let y = 8; y < top + STRIP_PX; y += 6) pen.fillRect(LEFT_PX + edges[shown.boundary] - 1, y, 1.5, 3);
  }
}

/**
 * One repeatable square of a rate's pattern, so that not only colour tells rates apart.
 * @param {Pen} pen
 * @param {number} rate
 * @param {string} color
 * @param {string} second
 * @param {number} size in device pixels
 */
export function drawRateTile(pen, rate, color, second, size) {
  pen.fillStyle = color;
  pen.fillRect(0, 0, size, size);
  pen.fillStyle = second;
  pen.strokeStyle = second;
  if (rate === 1) pen.fillRect(size * 0.4, size * 0.4, size * 0.2, size * 0.2);
  else if (rate === 2) pen.fillRect(0, size * 0.42, size, size * 0.16);
  else if (rate >= 3) {
    pen.lineWidth = size * (rate === 3 ? 0.14 : 0.16);
    for (const slope of rate === 3 ? [1] : [1, -1]) {
      pen.beginPath();
      for (const at of [-1, 0, 1]) {
        pen.moveTo(at * size - size, slope > 0 ? size * 2 : -size);
        pen.lineTo(at * size + size * 2, slope > 0 ? -size : size * 2);
      }
      pen.stroke();
    }
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

/** @param {string} text @param {string} [className] */
function knob(text, className = "") {
  const button = h("button", className, text);
  button.type = "button";
  return button;
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

/** @param {HTMLSelectElement} select @param {Choice[]} choices @param {string} [value] */
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
  if (value !== undefined && select.value !== value) select.value = value;
}

/**
 * Sizes a canvas in device pixels and returns a cleared context that draws in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
function freshPen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** @param {HTMLElement} root */
function themeOf(root) {
  const lab = root.closest("[data-jp-theme-light]") ?? document.querySelector("[data-jp-theme-light]");
  if (lab) return lab.getAttribute("data-jp-theme-light") === "false" ? "dark" : "light";
  if (document.body.classList.contains("vscode-dark")) return "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// ------------------------------------------------------------------------------ talk to Python

/**
 * Commands one after the other, each when the one before is answered. Of several places that a block is held
 * over while Python is busy only the last is asked for.
 * @param {Model} model
 * @param {AbortSignal} signal
 */
export function speaker(model, signal) {
  let waitingFor = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Command[]} */
  const queue = [];
  const pump = () => {
    if (waitingFor) return;
    const next = queue.shift();
    if (!next) return;
    waitingFor = Math.max(model.get("request").seq, model.get("ack")) + 1;
    model.set("request", { seq: waitingFor, ...next });
    model.save_changes();
    timer = setTimeout(release, ANSWER_WAIT_MS);
  };
  const release = () => {
    clearTimeout(timer);
    waitingFor = 0;
    pump();
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    /** @param {Command} command */
    ask(command) {
      while (queue.length && queue[queue.length - 1].action === "drag") queue.pop();
      queue.push(command);
      pump();
    },
    /** Called when Python has answered. */
    heard() {
      if (waitingFor && model.get("ack") >= waitingFor) release();
    },
    idle: () => !waitingFor && !queue.length,
  };
}

/**
 * What every part of the view shares.
 * @typedef {object} Desk
 * @property {Model} model
 * @property {HTMLElement} root
 * @property {AbortSignal} signal
 * @property {(command: Command) => void} ask
 * @property {<A extends unknown[]>(fn: (...args: A) => void) => (...args: A) => void} guard
 * @property {() => {fills: (string | CanvasPattern)[], ink: Ink}} palette
 */

/** @param {Desk} desk @param {EventTarget} target @param {string} type @param {(event: any) => void} fn */
function on(desk, target, type, fn) {
  target.addEventListener(type, desk.guard(fn), { signal: desk.signal });
}

// ---------------------------------------------------------------------------------------- view

/** @param {Desk} desk */
function buildHead(desk) {
  const box = h("div", "so-head");
  const what = h("div", "so-what");
  const title = h("h2", "so-clip");
  title.dir = "auto";
  const subtitle = h("p", "so-muted");
  what.append(title, subtitle);
  const figures = h("div", "so-figures");
  box.append(what, figures);

  const bar = h("div", "so-bar");
  const undo = knob("Undo");
  const redo = knob("Redo");
  const reset = knob("Reset");
  const best = knob("Take the best order");
  best.title = "The closed form's best order, with locks and constraints";
  const over = knob("Hand to the workbench");
  const label = h("label", "so-field", "Requests a day ");
  const a_day = h("input");
  a_day.type = "text";
  a_day.inputMode = "numeric";
  a_day.size = 9;
  label.append(a_day);
  const rewrites = h("span", "so-muted so-rewrites");
  bar.append(undo, redo, reset, best, over, label, rewrites);
  for (const [button, action] of /** @type {[HTMLButtonElement, string][]} */ ([[undo, "undo"], [redo, "redo"], [reset, "reset"], [over, "hand_over"]])) {
    on(desk, button, "click", () => button.getAttribute("aria-disabled") !== "true" && desk.ask({ action }));
  }
  on(desk, best, "click", () => desk.ask({ action: "use", value: "closed" }));
  on(desk, a_day, "change", () => desk.ask({ action: "a_day", value: a_day.value }));
  on(desk, desk.root, "keydown", (/** @type {KeyboardEvent} */ event) => {
    const inText = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (inText || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase();
    const action = key === "y" || (key === "z" && event.shiftKey) ? "redo" : key === "z" ? "undo" : "";
    if (!action) return;
    event.preventDefault();
    desk.ask({ action });
  });
  return {
    parts: [box, bar],
    draw() {
      const head = desk.model.get("head");
      setText(title, head.title);
      setText(subtitle, head.subtitle);
      figures.replaceChildren(
        ...head.figures.map((figure) => {
          const one = h("div", "so-fig");
          one.append(h("b", figure.tone ? `so-${figure.tone}` : "", figure.value), h("span", "", figure.label));
          return one;
        }),
      );
      setAttr(undo, "aria-disabled", String(!head.can_undo));
      setAttr(redo, "aria-disabled", String(!head.can_redo));
      setAttr(reset, "aria-disabled", String(!head.changed));
      over.hidden = !head.has_bench;
      if (document.activeElement !== a_day || !desk.root.contains(a_day)) a_day.value = head.a_day_text;
      setText(rewrites, head.rewrites.join("; "));
      rewrites.hidden = !head.rewrites.length;
    },
  };
}

/** @param {Desk} desk */
function buildPrompt(desk) {
  const box = h("figure", "so-prompt");
  const canvas = h("canvas");
  canvas.setAttribute("role", "img");
  const caption = h("figcaption", "so-legend");
  const curves = h("span", "so-key");
  curves.append(h("i", "so-line"), h("span", "", "unchanged up to here"));
  const before = h("span", "so-key");
  before.append(h("i", "so-line so-line-today"), h("span", "", "in today's order"));
  caption.append(curves, before);
  RATE_TEXT.forEach((text, rate) => {
    const key = h("span", "so-key");
    const swatch = h("canvas", "so-swatch");
    swatch.dataset.rate = String(rate);
    swatch.setAttribute("aria-hidden", "true");
    key.append(swatch, h("span", "", text));
    caption.append(key);
  });
  box.append(canvas, caption);
  return {
    box,
    draw() {
      const { fills, ink } = desk.palette();
      const shown = desk.model.get("shown");
      const sections = desk.model.get("sections");
      const width = box.clientWidth;
      const height = 8 + CURVE_PX + 8 + STRIP_PX + 6;
      canvas.style.height = `${height}px`;
      drawPrompt(freshPen(canvas, width, height), shown, sections, width, fills, ink, sections.name.indexOf(desk.model.get("detail").name));
      const last = shown.survival[shown.survival.length - 1] ?? 1000;
      setAttr(canvas, "aria-label", `Survival along the prompt: it falls from 100 percent to ${last / 10} percent at the end.`);
      for (const swatch of /** @type {NodeListOf<HTMLCanvasElement>} */ (caption.querySelectorAll("canvas"))) {
        const pen = freshPen(swatch, 14, 14);
        pen.fillStyle = fills[Number(swatch.dataset.rate)];
        pen.fillRect(0, 0, 14, 14);
      }
    },
  };
}

/** @typedef {HTMLDivElement & {section: number, look?: string}} Row */

/** @param {Desk} desk */
function buildBoard(desk) {
  const box = h("div", "so-board");
  const hint = h("p", "so-muted so-hint", "Drag a block, or choose it and press Alt with an arrow key. Space picks it up, L locks it.");
  hint.id = `so-hint-${Math.random().toString(36).slice(2)}`;
  const scroll = h("div", "so-scroll");
  const list = h("div", "so-list");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Sections in prompt order");
  list.setAttribute("aria-describedby", hint.id);
  const boundary = h("div", "so-boundary");
  boundary.append(h("span", "", "dynamic boundary"));
  scroll.append(list, boundary);
  box.append(hint, scroll);

  /** @type {Map<string, Row>} */
  const rows = new Map();
  let most = 1;
  let dataNumber = 0;
  /** @type {Sections | null} */
  let dataSeen = null;
  let painted = "";
  let lastY = 0;
  let gliding = 0;
  /** The block that a person holds. @type {{name: string, to: number, origin: number, keys: boolean} | null} */
  let held = null;
  /** @type {{name: string, y: number, id: number, moved: boolean} | null} */
  let pointer = null;

  const shown = () => desk.model.get("shown");
  const sections = () => desk.model.get("sections");
  const chosen = () => desk.model.get("detail").name;
  /** @param {string} name */
  const placeOf = (name) => shown().order.indexOf(sections().name.indexOf(name));
  /** @param {number} place */
  const nameAt = (place) => sections().name[shown().order[place]];
  /** @param {string} name */
  const canMove = (name) => {
    const section = sections().name.indexOf(name);
    return section >= 0 && !sections().fixed[section] && !shown().locked.includes(section);
  };
  /** @param {number} place */
  const target = (place) => movablePlace(shown().order, sections().fixed, place);

  /** @param {string} name */
  const select = (name) => {
    if (name !== chosen() && !sections().fixed[sections().name.indexOf(name)]) desk.ask({ action: "select", name });
  };
  /** @param {string} name @param {number} to */
  const hold = (name, to) => {
    if (!held || held.to === to) return;
    held.to = to;
    desk.ask({ action: "drag", name, to });
  };
  /** @param {boolean} keep */
  const release = (keep) => {
    if (!held) return;
    const { name, to, origin } = held;
    held = null;
    rows.get(name)?.classList.remove("so-held");
    rows.get(name)?.style.removeProperty("--lift");
    desk.ask(keep && to !== origin ? { action: "move", name, to } : { action: "rest" });
    draw();
  };
  /** @param {string} name @param {boolean} keys */
  const take = (name, keys) => {
    const at = target(placeOf(name));
    held = { name, to: at, origin: at, keys };
    rows.get(name)?.classList.add("so-held");
    draw();
  };

  /** @param {string} name */
  const makeRow = (name) => {
    const row = /** @type {Row} */ (h("div", "so-row"));
    row.setAttribute("role", "option");
    row.tabIndex = -1;
    const label = h("span", "so-name so-clip", name);
    label.dir = "auto";
    const track = h("span", "so-track");
    track.append(h("canvas", "so-block"));
    const said = h("span", "so-said");
    said.append(h("span", "so-rate so-clip"), h("span", "so-marks so-clip"));
    row.append(h("span", "so-grip", "⠿"), h("span", "so-place"), label, h("span", "so-badge"), track, h("span", "so-tokens"), said);
    for (const part of row.children) part.setAttribute("aria-hidden", "true");
    on(desk, row, "pointerdown", (/** @type {PointerEvent} */ event) => pointerDown(event, name));
    on(desk, row, "focus", () => select(name));
    rows.set(name, row);
    return row;
  };

  /** @param {PointerEvent} event @param {string} name */
  const pointerDown = (event, name) => {
    if (event.button !== 0 || (event.pointerType === "touch" && !(/** @type {Element} */ (event.target).closest(".so-grip")))) return;
    rows.get(name)?.focus({ preventScroll: true });
    if (held?.keys) release(false);
    if (!canMove(name)) return;
    pointer = { name, y: event.clientY, id: event.pointerId, moved: false };
    list.setPointerCapture(event.pointerId);
  };
  /** Carries the block to the pointer, and scrolls on while that is near an edge. */
  const glide = desk.guard(() => {
    gliding = 0;
    if (!pointer?.moved) return;
    const area = scroll.getBoundingClientRect();
    const step = lastY < area.top + EDGE_PX ? -8 : lastY > area.bottom - EDGE_PX ? 8 : 0;
    const before = scroll.scrollTop;
    scroll.scrollTop += step;
    const y = lastY - list.getBoundingClientRect().top;
    hold(pointer.name, target(placeAt(y, shown().order.length, shown().boundary)));
    rows.get(pointer.name)?.style.setProperty("--lift", `${y - ROW_PX / 2}px`);
    if (scroll.scrollTop !== before) gliding = requestAnimationFrame(glide);
  });
  desk.signal.addEventListener("abort", () => cancelAnimationFrame(gliding));
  on(desk, list, "pointermove", (/** @type {PointerEvent} */ event) => {
    if (!pointer || event.pointerId !== pointer.id) return;
    if (!pointer.moved) {
      if (Math.abs(event.clientY - pointer.y) < DRAG_FROM_PX) return;
      pointer.moved = true;
      take(pointer.name, false);
    }
    lastY = event.clientY;
    if (!gliding) glide();
  });
  /** @param {boolean} keep */
  const letGo = (keep) => {
    const moved = pointer?.moved;
    pointer = null;
    if (moved) release(keep);
  };
  on(desk, list, "pointerup", () => letGo(true));
  on(desk, list, "pointercancel", () => letGo(false));
  on(desk, list, "lostpointercapture", () => letGo(true));

  /** @param {KeyboardEvent} event @param {string} name */
  const keyWhileHeld = (event, name) => {
    const now = /** @type {{to: number}} */ (held).to;
    const count = sections().fixed.filter((fixed) => !fixed).length;
    /** @type {Record<string, number>} */
    const to = { ArrowUp: now - 1, ArrowDown: now + 1, Home: 0, End: count - 1, PageUp: now - 5, PageDown: now + 5 };
    if (event.key in to) hold(name, Math.max(0, Math.min(count - 1, to[event.key])));
    else if (event.key === " " || event.key === "Enter") release(true);
    else if (event.key === "Escape" || event.key === "Tab") release(false);
    else return event.key !== "Tab";
    return event.key !== "Tab";
  };
  on(desk, list, "keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey) return;
    const row = /** @type {Row | null} */ (/** @type {Element} */ (event.target).closest(".so-row"));
    if (!row) return;
    const name = sections().name[row.section];
    if (pointer?.moved && event.key === "Escape") {
      event.preventDefault();
      letGo(false);
      return;
    }
    if (held) {
      if (keyWhileHeld(event, held.name)) event.preventDefault();
      return;
    }
    const place = placeOf(name);
    const last = shown().order.length - 1;
    /** @type {Record<string, number>} */
    const to = { ArrowUp: place - 1, ArrowDown: place + 1, Home: 0, End: last, PageUp: place - 8, PageDown: place + 8 };
    if (event.key in to) {
      event.preventDefault();
      const next = Math.max(0, Math.min(last, to[event.key]));
      if (event.altKey) {
        if (canMove(name) && next !== place) desk.ask({ action: "move", name, to: target(next) });
      } else rows.get(nameAt(next))?.focus();
    } else if (event.key === " " && !event.altKey) {
      event.preventDefault();
      if (canMove(name)) take(name, true);
    } else if (event.key.toLowerCase() === "l" && !event.altKey) {
      event.preventDefault();
      if (!sections().fixed[row.section]) desk.ask({ action: shown().locked.includes(row.section) ? "release" : "lock", name });
    }
  });

  /** Rows of the page in prompt order; the one that has the focus is never moved, or it would lose it. @param {Row[]} wanted */
  const arrange = (wanted) => {
    /** @type {ChildNode | null} */
    let here = list.firstChild;
    for (const row of wanted) {
      if (row === here) {
        here = here.nextSibling;
      } else if (row.parentNode === list && row.matches(":focus")) {
        const behind = row.nextSibling;
        while (here && here !== row) {
          const next = here.nextSibling;
          list.insertBefore(here, behind);
          here = next;
        }
        here = row.nextSibling;
      } else list.insertBefore(row, here);
    }
  };

  /** @param {Row} row @param {number} section @param {number} place @param {number} count */
  const dress = (row, section, place, count) => {
    const data = sections();
    const locked = shown().locked.includes(section);
    const mark = [locked ? "locked" : "", data.fixed[section] ? "fixed" : "", shown().marks[section]].filter(Boolean).join(" · ");
    row.section = section;
    const isChosen = data.name[section] === chosen();
    // Moving one block leaves most rows as they are.
    const look = `${dataNumber} ${section} ${place} ${count} ${shown().boundary} ${isChosen} ${mark}`;
    if (row.look === look) return;
    row.look = look;
    setAttr(row, "aria-selected", String(isChosen));
    setAttr(row, "aria-posinset", String(place + 1));
    setAttr(row, "aria-setsize", String(count));
    setAttr(row, "aria-label", visibleText(`${data.name[section]}, ${data.label[section]}${mark ? `, ${mark}` : ""}`));
    setAttr(row, "data-locked", String(locked));
    setAttr(row, "data-fixed", String(data.fixed[section]));
    const parts = row.children;
    setText(parts[1], String(place + 1));
    setText(parts[3], data.badge[section]);
    setText(parts[5], data.tokens_text[section]);
    setText(parts[6].children[0], data.rate_text[section]);
    setText(parts[6].children[1], mark);
    const block = /** @type {HTMLElement} */ (parts[4].firstChild);
    block.style.width = `${blockWidth(data.tokens[section], most)}%`;
    row.style.setProperty("--y", `${rowTop(place, shown().boundary)}px`);
  };

  const paintBlocks = () => {
    const { fills } = desk.palette();
    for (const row of rows.values()) {
      const canvas = /** @type {HTMLCanvasElement} */ (row.children[4].firstChild);
      const width = canvas.clientWidth;
      const rate = sections().rate[row.section];
      const print = `${width} ${rate} ${desk.root.dataset.theme} ${window.devicePixelRatio}`;
      if (!width || canvas.dataset.print === print) continue;
      canvas.dataset.print = print;
      const pen = freshPen(canvas, width, 18);
      pen.fillStyle = fills[rate];
      pen.fillRect(0, 0, width, 18);
    }
  };

  const draw = () => {
    const data = sections();
    const { order, boundary: at } = shown();
    if (order.length && Math.max(...order) >= data.name.length) return;
    if (data !== dataSeen) {
      dataSeen = data;
      dataNumber += 1;
      most = 1;
      for (const section of order) most = Math.max(most, data.tokens[section]);
    }
    const names = new Set(order.map((section) => data.name[section]));
    for (const [name, row] of rows) {
      if (names.has(name)) continue;
      row.remove();
      rows.delete(name);
    }
    const wanted = order.map((section, place) => {
      const row = rows.get(data.name[section]) ?? makeRow(data.name[section]);
      dress(row, section, place, order.length);
      return row;
    });
    arrange(wanted);
    const focusable = rows.get(chosen()) ?? wanted[0];
    for (const row of wanted) if ((row.tabIndex === 0) !== (row === focusable)) row.tabIndex = row === focusable ? 0 : -1;
    list.style.height = `${rowTop(order.length, at)}px`;
    scroll.style.maxHeight = `${LIST_PX}px`;
    boundary.hidden = at === null;
    if (at !== null) boundary.style.top = `${at * ROW_PX + SEAM_PX / 2}px`;
    const look = `${dataNumber} ${list.clientWidth} ${desk.root.dataset.theme} ${window.devicePixelRatio}`;
    if (look !== painted) {
      painted = look;
      paintBlocks();
    }
  };
  return { box, draw, held: () => held !== null };
}

/** @param {Desk} desk */
function buildDetail(desk) {
  const box = h("section", "so-card");
  const title = h("h3", "so-clip");
  title.dir = "auto";
  const facts = h("ul", "so-facts");
  const none = h("p", "so-muted", "This part never moves.");
  const body = h("div", "so-detail");
  box.append(title, facts, none, body);

  const rateRow = h("div", "so-line-row");
  const rateLabel = h("label", "so-field", "Changes in ");
  const rate = h("input");
  rate.type = "text";
  rate.inputMode = "decimal";
  rate.size = 6;
  rateLabel.append(rate, h("span", "", " % of requests"));
  const measured = knob("As measured");
  rateRow.append(rateLabel, measured);
  const lockRow = h("div", "so-line-row");
  const lock = knob("Lock to its place");
  lockRow.append(lock);
  const beforeRow = h("div", "so-line-row");
  const beforeLabel = h("label", "so-field", "Must stand before ");
  const before = h("select");
  beforeLabel.append(before);
  const demand = knob("Demand");
  beforeRow.append(beforeLabel, demand);
  const demands = h("ul", "so-demands");
  const beyond = h("div", "so-line-row");
  const split = knob("Split at its changing lines");
  const turn = knob("Send with the turn");
  beyond.append(split, turn);
  const clockRow = h("div", "so-line-row");
  const clockLabel = h("label", "so-field", "Coarser clock ");
  const grain = h("select");
  clockLabel.append(grain);
  const coarser = knob("Apply");
  coarser.setAttribute("aria-label", "Apply the coarser clock");
  clockRow.append(clockLabel, coarser);
  body.append(rateRow, lockRow, beforeRow, demands, beyond, clockRow);

  const name = () => desk.model.get("detail").name;
  on(desk, rate, "change", () => desk.ask({ action: "rate", name: name(), value: rate.value }));
  on(desk, measured, "click", () => desk.ask({ action: "measured", name: name() }));
  on(desk, lock, "click", () => desk.ask({ action: desk.model.get("detail").locked ? "release" : "lock", name: name() }));
  on(desk, demand, "click", () => before.value && desk.ask({ action: "before", name: name(), value: before.value }));
  on(desk, split, "click", () => desk.ask({ action: "split", name: name() }));
  on(desk, turn, "click", () => desk.ask({ action: "turn", name: name() }));
  on(desk, coarser, "click", () => desk.ask({ action: "clock", name: name(), value: grain.value }));
  on(desk, demands, "click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    const pair = desk.model.get("detail").before[Number(button?.dataset.at ?? -1)];
    if (pair) desk.ask({ action: "free", name: pair.first, value: pair.second });
  });
  let drawn = "";
  return {
    box,
    draw() {
      const detail = desk.model.get("detail");
      setText(title, detail.name || "Nothing chosen");
      facts.replaceChildren(...detail.facts.map((fact) => h("li", "", fact)));
      none.hidden = Boolean(detail.name);
      body.hidden = !detail.name;
      const typing = document.activeElement === rate || rate.matches(":focus");
      if (!typing || drawn !== detail.name) rate.value = detail.rate_text;
      drawn = detail.name;
      measured.hidden = !detail.by_hand;
      setText(lock, detail.locked ? "Release the lock" : "Lock to its place");
      fillSelect(before, detail.choices.map((choice) => ({ value: choice, label: choice })));
      beforeRow.hidden = !detail.choices.length;
      demands.replaceChildren(
        ...detail.before.map((pair, at) => {
          const item = h("li", "", pair.text);
          const drop = knob("Drop");
          drop.dataset.at = String(at);
          drop.setAttribute("aria-label", visibleText(`Drop: ${pair.text}`));
          item.append(" ", drop);
          return item;
        }),
      );
      demands.hidden = !detail.before.length;
      split.hidden = !detail.can_split;
      turn.hidden = !detail.can_turn;
      clockRow.hidden = !detail.grains.length;
      fillSelect(grain, detail.grains);
    },
  };
}

/** @param {Desk} desk */
function buildTable(desk) {
  const box = h("section", "so-card so-compare");
  const title = h("h3", "", "Side by side");
  const scroll = h("div", "so-table");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Orders side by side");
  const table = h("table");
  const thead = h("thead");
  const tbody = h("tbody");
  table.append(h("caption", "so-hear", "Cost of each order"), thead, tbody);
  scroll.append(table);
  const row = h("div", "so-line-row");
  const label = h("label", "so-field", "Variant ");
  const name = h("input");
  name.type = "text";
  name.size = 14;
  name.maxLength = 60;
  label.append(name);
  const keep = knob("Keep this order");
  const find = knob("Search the session");
  find.title = "Local search on the real history, then every order where that is feasible";
  row.append(label, keep, find);
  box.append(title, scroll, row);
  on(desk, keep, "click", () => {
    desk.ask({ action: "keep", value: name.value });
    name.value = "";
  });
  on(desk, name, "keydown", (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && keep.click());
  on(desk, find, "click", () => desk.ask({ action: "find" }));
  on(desk, tbody, "click", (/** @type {MouseEvent} */ event) => {
    const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
    const key = button?.dataset.key;
    if (!button || key === undefined) return;
    const variant = key.startsWith("variant:") ? key.slice(8) : null;
    if (button.dataset.drop) desk.ask({ action: "drop_variant", value: variant ?? "" });
    else desk.ask(variant === null ? { action: "use", value: key } : { action: "use_variant", value: variant });
  });
  let print = "";
  return {
    box,
    draw() {
      const data = desk.model.get("table");
      find.hidden = !data.can_find;
      const now = JSON.stringify(data);
      if (now === print) return;
      print = now;
      const focus = tbody.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.key : undefined;
      const heads = h("tr");
      for (const column of ["order", ...data.columns, ""]) {
        const cell = h("th", "", column);
        cell.scope = "col";
        heads.append(cell);
      }
      thead.replaceChildren(heads);
      tbody.replaceChildren(...data.rows.map(tableRow));
      if (focus !== undefined) {
        [...tbody.querySelectorAll("button")].find((button) => button.dataset.key === focus)?.focus();
      }
    },
  };
}

/** @param {TableRow} data */
function tableRow(data) {
  const row = h("tr", data.key === "now" ? "so-now" : "");
  const head = h("th");
  head.scope = "row";
  head.append(h("span", "so-order-name", data.name));
  if (data.note) head.append(h("small", "so-muted", data.note));
  row.append(head);
  data.cells.forEach((cell, index) => {
    const tone = index === data.cells.length - 1 && data.tone ? `so-${data.tone}` : "";
    row.append(h("td", tone, cell));
  });
  const last = h("td", "so-do");
  if (data.usable) {
    const use = knob("Use");
    use.dataset.key = data.key;
    use.setAttribute("aria-label", visibleText(`Use ${data.name}`));
    last.append(use);
  }
  if (data.key.startsWith("variant:")) {
    const drop = knob("Drop");
    drop.dataset.key = data.key;
    drop.dataset.drop = "1";
    drop.setAttribute("aria-label", visibleText(`Drop ${data.name}`));
    last.append(" ", drop);
  }
  row.append(last);
  return row;
}

/** @param {Desk} desk */
function buildMore(desk) {
  const box = h("div", "so-more");
  const plan = h("details", "so-card");
  plan.append(h("summary", "", "Explicit cache: breakpoints with the order"));
  const planRow = h("div", "so-line-row");
  const modelLabel = h("label", "so-field", "Model ");
  const models = h("select");
  modelLabel.append(models);
  const ask = knob("Plan");
  planRow.append(modelLabel, ask);
  const planTitle = h("p");
  const lines = h("ul", "so-facts");
  plan.append(planRow, planTitle, lines);
  on(desk, ask, "click", () => desk.ask({ action: "plan", value: models.value }));

  const out = h("details", "so-card");
  out.append(h("summary", "", "Take the order out, or read one"));
  const outRow = h("div", "so-line-row");
  const kindLabel = h("label", "so-field", "As ");
  const kinds = h("select");
  kindLabel.append(kinds);
  const show = knob("Show");
  const copy = knob("Copy");
  const read = knob("Read this text");
  outRow.append(kindLabel, show, copy, read);
  const text = h("textarea");
  text.rows = 8;
  text.spellcheck = false;
  text.setAttribute("aria-label", "Exported order, or an order to read");
  out.append(outRow, text);
  on(desk, show, "click", () => desk.ask({ action: "export", value: kinds.value }));
  on(desk, read, "click", () => desk.ask({ action: "read", value: text.value }));
  on(desk, copy, "click", () => {
    text.select();
    // Without the permission the text stays selected, and the person copies it.
    navigator.clipboard?.writeText(text.value).catch(() => undefined);
  });
  box.append(plan, out);
  let print = "";
  return {
    box,
    drawPlan() {
      const data = desk.model.get("plan");
      fillSelect(models, data.models.map((value) => ({ value, label: value })), data.model || undefined);
      setText(planTitle, data.title);
      planTitle.hidden = !data.title;
      lines.replaceChildren(...data.lines.map((line) => h("li", "", line)));
    },
    drawExport() {
      const data = desk.model.get("export");
      fillSelect(kinds, data.kinds, data.kind || undefined);
      if (print === data.kind + data.text) return;
      print = data.kind + data.text;
      text.value = data.text;
    },
  };
}

/** @param {Desk} desk */
function buildFoot(desk) {
  const notes = h("div", "so-foot");
  const error = h("div", "so-error");
  error.setAttribute("role", "alert");
  const live = h("div", "so-hear");
  live.setAttribute("role", "status");
  live.setAttribute("aria-live", "polite");
  let own = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  desk.signal.addEventListener("abort", () => clearTimeout(timer));
  const drawError = () => {
    const text = [desk.model.get("error"), own].filter(Boolean).join(" ");
    setText(error, text);
    error.hidden = !text;
  };
  drawError();
  return {
    parts: [error, notes, live],
    drawError,
    /** @param {string} text an error of this view itself */
    fail(text) {
      own = text;
      drawError();
    },
    draw: () => notes.replaceChildren(...desk.model.get("head").notes.map((note) => h("span", "", note))),
    announce() {
      clearTimeout(timer);
      timer = setTimeout(() => setText(live, desk.model.get("announce")), ANNOUNCE_MS);
    },
  };
}

/** Reads the palette that the style sheet gives, once a look. @param {HTMLElement} root */
function paletteReader(root) {
  /** @type {{fills: (string | CanvasPattern)[], ink: Ink} | null} */
  let kept = null;
  return {
    forget: () => (kept = null),
    read() {
      if (kept) return kept;
      const style = getComputedStyle(root);
      /** @param {string} name */
      const color = (name) => style.getPropertyValue(name).trim() || "gray";
      const size = Math.round(8 * (window.devicePixelRatio || 1));
      const fills = RATE_TEXT.map((_, rate) => {
        const tile = document.createElement("canvas");
        tile.width = tile.height = size;
        const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
        drawRateTile(pen, rate, color(`--rate-${rate}`), color(`--rate-${rate}-2`), size);
        const made = /** @type {CanvasPattern} */ (pen.createPattern(tile, "repeat"));
        made.setTransform(new DOMMatrix().scale(8 / size));
        return made;
      });
      const ink = {
        fg: style.color, muted: color("--muted-ink"), line: color("--line-ink"), bg: style.backgroundColor,
        today: color("--today"), font: `11px ${style.fontFamily || "sans-serif"}`,
      };
      const result = { fills, ink };
      if (root.isConnected) kept = result;
      return result;
    },
  };
}

/** What has to be drawn again when a trait changes. @type {Part[]} */
const PARTS = ["head", "sections", "shown", "detail", "table", "plan", "export", "announce", "error", "ack"];

/** @type {import("@anywidget/types").Render<State>} */
function render({ model, el }) {
  const stop = new AbortController();
  const root = h("div", "csorder");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Section order board");
  // Otherwise JupyterLab takes arrow keys, Space and letters for the notebook around the widget.
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  // JupyterLab listens on the field itself and would forbid line breaks and undo in it.
  root.addEventListener("beforeinput", (event) => event.stopPropagation(), { capture: true, signal: stop.signal });
  const palette = paletteReader(root);
  const speak = speaker(model, stop.signal);
  /** @type {Set<Part>} */
  const dirty = new Set();
  let frame = 0;
  let looks = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Desk["guard"]} */
  const guard = (fn) => (...args) => {
    try {
      fn(...args);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      foot.fail(`The board's view met an error: ${message}. Run the cell again to draw it afresh.`);
      console.error(error);
    }
  };
  /** @type {Desk} */
  const desk = { model, root, signal: stop.signal, ask: speak.ask, guard, palette: palette.read };
  const foot = buildFoot(desk);
  const head = buildHead(desk);
  const prompt = buildPrompt(desk);
  const board = buildBoard(desk);
  const detail = buildDetail(desk);
  const table = buildTable(desk);
  const more = buildMore(desk);
  const grid = h("div", "so-grid");
  grid.append(board.box, detail.box);
  const body = h("div", "so-body");
  body.append(...head.parts, prompt.box, grid, foot.parts[0], table.box, more.box, ...foot.parts.slice(1));
  root.append(body);

  /** @param {Part[]} parts */
  const changed = (...parts) => {
    for (const part of parts) dirty.add(part);
    if (!frame) frame = requestAnimationFrame(flush);
  };
  /** @param {Part[]} parts @param {() => void} draw */
  const when = (parts, draw) => {
    if (parts.some((part) => dirty.has(part))) guard(draw)();
  };
  const flush = () => {
    frame = 0;
    // Out of sight nothing can be measured; JupyterLab hides the page for a moment when it changes the theme.
    if (!root.isConnected || root.clientWidth === 0) {
      if (looks < HIDDEN_LOOKS) timer = setTimeout(changed, HIDDEN_WAIT_MS);
      looks += 1;
      return;
    }
    looks = 0;
    if (dirty.has("look")) palette.forget();
    when(["ack"], speak.heard);
    when(["head"], head.draw);
    when(["head"], foot.draw);
    when(["sections", "shown", "detail", "look"], board.draw);
    when(["sections", "shown", "detail", "look"], prompt.draw);
    when(["detail"], detail.draw);
    when(["table"], table.draw);
    when(["plan"], more.drawPlan);
    when(["export"], more.drawExport);
    when(["announce"], foot.announce);
    when(["error"], foot.drawError);
    dirty.clear();
    root.dataset.ack = String(model.get("ack"));
    root.dataset.ready = "1";
  };
  for (const part of PARTS) {
    const listen = () => changed(part);
    const event = /** @type {const} */ (`change:${part}`);
    model.on(event, listen);
    stop.signal.addEventListener("abort", () => model.off(event, listen));
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
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      relook();
    }),
  );
  sizes.observe(root);
  el.append(root);
  relook();
  changed(...PARTS);
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
