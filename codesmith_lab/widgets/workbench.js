// @ts-check
/**
 * The workbench: draws what Python computed. No money, token or cache arithmetic here.
 * Text from logs is only ever set as text.
 */

const NAMES = { hit: "hit", new: "new this turn", repaid: "paid again: the prefix moved",
  rounding: "rest of a cache unit", expired: "expired", unmarked: "unmarked" };
const MIN_ROW = 25;
const LINE = 18;

/** Row height in pixels: grows with tokens, gently. @param {number} tokens */
export function rowHeight(tokens) {
  return Math.round(MIN_ROW + Math.min(56, Math.sqrt(Math.max(0, tokens)) * 0.75));
}

/** Running offsets of heights. @param {number[]} heights */
export function offsetsOf(heights) {
  const ends = [0];
  for (const h of heights) ends.push(ends[ends.length - 1] + h);
  return ends;
}

/** First and last (excluded) index that overlap [top, top + height). @param {number[]} ends @param {number} top @param {number} height */
export function visibleRange(ends, top, height) {
  let low = 0, high = ends.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (ends[mid + 1] <= top) low = mid + 1; else high = mid;
  }
  let last = low;
  while (last < ends.length - 1 && ends[last] < top + height) last += 1;
  return [low, last];
}

/** Place and width of each bar. @param {number} count @param {number} width */
export function barLayout(count, width) {
  const step = width / Math.max(1, count);
  const gap = step > 6 ? 3 : step > 3 ? 1 : 0;
  return { step, bar: Math.max(0.5, step - gap) };
}

/** The text in pieces, marked or not. @param {string} text @param {number[][]} marks */
export function markPieces(text, marks) {
  const pieces = [];
  let at = 0;
  for (const [start, end] of marks) {
    if (start > at) pieces.push({ text: text.slice(at, start), mark: false });
    pieces.push({ text: text.slice(start, end), mark: true });
    at = end;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), mark: false });
  return pieces;
}

/** Make control characters of a name visible. @param {string} text */
export function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (ch) =>
    "\\x" + ch.charCodeAt(0).toString(16).padStart(2, "0"));
}

/** Fill a rectangle in the pattern of a cause. @param {CanvasRenderingContext2D} ctx @param {string} cause @param {Record<string,string>} colours @param {number} x @param {number} y @param {number} w @param {number} h */
export function fillCause(ctx, cause, colours, x, y, w, h) {
  if (h <= 0 || w <= 0) return;
  ctx.fillStyle = colours[cause];
  ctx.fillRect(x, y, w, h);
  if (cause === "hit" || cause === "new" || w < 3) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = colours[cause + "-2"];
  ctx.lineWidth = 2;
  ctx.beginPath();
  if (cause === "repaid" || cause === "unmarked") {
    for (let d = Math.floor((x - y - h) / 7) * 7; d < x + w - y; d += 7) {
      ctx.moveTo(d + y, y); ctx.lineTo(d + y + h, y + h);
      if (cause === "unmarked") { ctx.moveTo(d + y + h, y); ctx.lineTo(d + y, y + h); }
    }
  } else {
    for (let v = Math.ceil(y / 4) * 4; v < y + h; v += 4) {
      if (cause === "expired") { ctx.moveTo(x, v); ctx.lineTo(x + w, v); }
      else for (let u = Math.ceil(x / 4) * 4; u < x + w; u += 4) ctx.fillRect(u, v, 1, 1);
    }
  }
  ctx.stroke();
  ctx.restore();
}

/** @param {string} tag @param {string} [cls] @param {string} [text] */
function make(tag, cls = "", text = "") {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text) node.textContent = text;
  return node;
}

/** @param {string} text @param {string} cls */
function isolated(text, cls = "") {
  const node = make("bdi", cls, visible(text));
  node.dir = "auto";
  return node;
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

class View {
  /** @param {any} model @param {HTMLElement} el */
  constructor(model, el) {
    this.model = model;
    this.seq = 0;
    this.key = "";
    this.typed = 0;
    this.composing = false;
    this.frame = 0;
    /** @type {Set<string>} */
    this.dirty = new Set();
    /** @type {Record<string, any>} */
    this.ui = {};
    this.root = make("div", "cslab");
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "Prompt cache workbench");
    this.build();
    el.append(this.root);
    this.colours = this.readColours();
    this.handlers = ["head", "timeline", "blocks", "editor", "side", "turn", "selected", "scope",
      "announce", "error", "ack"].map((name) => {
      const handler = () => this.mark(name);
      model.on("change:" + name, handler);
      return { name, handler };
    });
    this.resize = new ResizeObserver(() => this.mark("timeline", "blocks"));
    this.resize.observe(this.root);
    this.themes = new MutationObserver(() => this.mark("theme", "timeline", "blocks", "side"));
    this.themes.observe(document.body, { attributes: true,
      attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
    this.mark("head", "timeline", "blocks", "editor", "side", "scope", "theme");
  }

  destroy() {
    for (const { name, handler } of this.handlers) this.model.off("change:" + name, handler);
    this.resize.disconnect();
    this.themes.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** @param {...string} names */
  mark(...names) {
    for (const name of names) this.dirty.add(name);
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  readColours() {
    const style = getComputedStyle(this.root);
    /** @type {Record<string, string>} */
    const found = {};
    for (const cause of Object.keys(NAMES)) {
      found[cause] = style.getPropertyValue("--" + cause).trim();
      found[cause + "-2"] = style.getPropertyValue(`--${cause}-2`).trim();
    }
    found.fg = style.color;
    found.lost = style.getPropertyValue("--lost-text").trim();
    found.sans = style.fontFamily;
    return found;
  }

  theme() {
    const set = document.body.dataset.jpThemeLight;
    const dark = set ? set === "false" : matchMedia("(prefers-color-scheme: dark)").matches;
    this.root.dataset.theme = dark ? "dark" : "light";
    this.colours = this.readColours();
  }

  draw() {
    this.frame = 0;
    const dirty = this.dirty;
    this.dirty = new Set();
    try {
      if (dirty.has("theme")) this.theme();
      if (dirty.has("head") || dirty.has("scope")) this.drawHead();
      if (dirty.has("timeline") || dirty.has("turn")) this.drawTimeline();
      if (dirty.has("blocks") || dirty.has("selected")) this.drawZones(dirty.has("blocks"));
      if (dirty.has("editor")) this.drawEditor();
      if (dirty.has("side")) this.drawSide();
      if (dirty.has("announce")) this.ui.live.textContent = this.model.get("announce");
      this.showError(this.model.get("error"));
    } catch (problem) {
      this.showError("The drawing failed: " + problem);
    }
    this.root.dataset.ack = String(this.model.get("ack"));
    this.root.dataset.ready = "1";
  }

  /** @param {string} text */
  showError(text) {
    this.ui.error.textContent = text;
    this.ui.error.hidden = !text;
  }

  /** @param {string} action @param {string} [value] */
  ask(action, value) {
    this.seq += 1;
    this.model.set("request", { seq: this.seq, action, ...(value === undefined ? {} : { value }) });
    this.model.save_changes();
  }

  /** @param {number} turn */
  go(turn) {
    const last = (this.model.get("timeline").totals || []).length - 1;
    const to = Math.max(0, Math.min(last, turn));
    if (to === this.model.get("turn")) return;
    this.model.set("turn", to);
    this.model.save_changes();
    this.mark("turn");
  }

  /** @param {number} row */
  pick(row) {
    this.model.set("selected", row);
    this.model.save_changes();
    this.mark("selected");
  }

  build() {
    const ui = this.ui;
    const body = make("div", "cs-body");
    ui.head = make("div", "cs-head");
    ui.what = make("div", "cs-what");
    ui.title = make("h2", "cs-clip");
    ui.turns = make("span", "cs-muted");
    ui.model = /** @type {HTMLSelectElement} */ (make("select"));
    ui.model.setAttribute("aria-label", "Model whose rules and prices apply");
    ui.model.onchange = () => this.ask("model", ui.model.value);
    ui.rules = make("span", "cs-muted");
    ui.chip = make("span", "cs-chip");
    ui.figures = make("div", "cs-figures");
    ui.what.append(ui.title, ui.turns, ui.model, ui.rules, ui.chip);
    ui.head.append(ui.what, ui.figures);

    ui.time = make("div", "cs-time");
    ui.time.tabIndex = 0;
    ui.time.setAttribute("role", "slider");
    ui.time.setAttribute("aria-label", "Turn");
    ui.timeCanvas = make("canvas");
    ui.timeFrame = make("div", "cs-frame");
    ui.tip = make("div", "cs-tip");
    ui.tip.hidden = true;
    ui.time.append(ui.timeCanvas, ui.timeFrame, ui.tip);
    ui.time.onclick = (/** @type {MouseEvent} */ e) => this.go(this.turnAt(e));
    ui.time.onmousemove = (/** @type {MouseEvent} */ e) => this.hover(e);
    ui.time.onmouseleave = () => { ui.tip.hidden = true; };
    ui.time.onkeydown = (/** @type {KeyboardEvent} */ e) => this.timeKey(e);
    ui.legend = make("div", "cs-legend");
    ui.keys = make("span", "cs-legend");
    ui.keys.style.margin = "0";
    ui.walk = make("span", "cs-walk");
    ui.where = make("span");
    const back = make("button", "", "◀"), on = make("button", "", "▶");
    back.setAttribute("aria-label", "Previous turn");
    on.setAttribute("aria-label", "Next turn");
    back.onclick = () => this.go(this.model.get("turn") - 1);
    on.onclick = () => this.go(this.model.get("turn") + 1);
    ui.walk.append(ui.where, back, on);
    ui.legend.append(ui.keys, make("span", "cs-space"), ui.walk);

    ui.grid = make("div", "cs-grid");
    ui.zones = make("div");
    ui.zoneViews = {};
    for (const zone of ["pinned", "log", "scratch"]) ui.zones.append(this.buildZone(zone));
    ui.middle = make("div", "cs-middle");
    this.buildEditor();
    ui.side = make("div", "cs-side");
    ui.grid.append(ui.zones, ui.middle, ui.side);
    ui.foot = make("div", "cs-foot");
    ui.error = make("div", "cs-error");
    ui.error.setAttribute("role", "alert");
    ui.error.hidden = true;
    ui.live = make("div", "cs-hear");
    ui.live.setAttribute("aria-live", "polite");
    body.append(ui.head, ui.time, ui.legend, ui.grid, ui.foot, ui.error, ui.live);
    this.root.append(body);
  }

  /** @param {string} zone */
  buildZone(zone) {
    const box = make("section", "cs-zone");
    box.dataset.zone = zone;
    const head = make("div", "cs-zone-head");
    const title = make("h3"), subtitle = make("span", "cs-clip");
    head.append(title, subtitle);
    const scroll = make("div", "cs-scroll"), stack = make("div", "cs-stack");
    stack.setAttribute("role", "listbox");
    const canvas = /** @type {HTMLCanvasElement} */ (make("canvas"));
    const rows = make("div");
    rows.setAttribute("role", "presentation");
    stack.append(rows, canvas);
    scroll.append(stack);
    box.append(head, scroll);
    const view = { box, title, subtitle, scroll, stack, canvas, rows, ends: [0], low: 0, high: 0 };
    this.ui.zoneViews[zone] = view;
    scroll.onscroll = () => this.drawRows(zone);
    stack.onkeydown = (e) => this.rowKey(e);
    return box;
  }

  buildEditor() {
    const ui = this.ui;
    ui.editor = make("div", "cs-editor");
    const bar = make("div", "cs-bar cs-bar-top"), end = make("div", "cs-bar cs-bar-end");
    ui.name = make("h3", "cs-clip");
    ui.seg = make("div", "cs-seg");
    ui.seg.setAttribute("role", "radiogroup");
    ui.seg.setAttribute("aria-label", "Stability");
    ui.seg.onkeydown = (/** @type {KeyboardEvent} */ e) => this.segKey(e);
    ui.place = make("span", "cs-muted");
    ui.up = make("button", "", "↑");
    ui.down = make("button", "", "↓");
    ui.up.setAttribute("aria-label", "Move section up");
    ui.down.setAttribute("aria-label", "Move section down");
    ui.up.onclick = () => this.move(-1);
    ui.down.onclick = () => this.move(1);
    const moves = make("span", "cs-move");
    moves.append(ui.place, ui.up, ui.down);
    bar.append(ui.name, ui.seg, make("span", "cs-space"), moves);
    ui.reason = make("div", "cs-reason");
    ui.code = make("div", "cs-code");
    ui.lines = make("div", "cs-lines");
    ui.lines.setAttribute("aria-hidden", "true");
    ui.marks = make("div", "cs-marks");
    ui.marks.setAttribute("aria-hidden", "true");
    ui.text = /** @type {HTMLTextAreaElement} */ (make("textarea"));
    ui.text.spellcheck = false;
    ui.text.wrap = "off";
    ui.text.oninput = () => this.type();
    ui.text.onscroll = () => this.drawBackdrop();
    ui.text.oncompositionstart = () => { this.composing = true; };
    ui.text.oncompositionend = () => { this.composing = false; this.type(); };
    ui.text.onkeydown = (/** @type {KeyboardEvent} */ e) => this.moveKey(e);
    ui.code.append(ui.lines, ui.marks, ui.text);
    const scope = make("label", "cs-scope", "Change ");
    ui.scope = /** @type {HTMLSelectElement} */ (make("select"));
    ui.scope.setAttribute("aria-label", "How far a change reaches");
    ui.scope.onchange = () => this.ask("scope", ui.scope.value);
    scope.append(ui.scope);
    end.append(scope, make("span", "cs-space"));
    for (const [action, label] of [["undo", "Undo"], ["redo", "Redo"], ["reset", "Reset"]]) {
      ui[action] = make("button", "", label);
      ui[action].onclick = () => {
        if (ui[action].getAttribute("aria-disabled") !== "true") this.ask(action);
      };
      end.append(ui[action]);
    }
    ui.editor.append(bar, ui.reason, ui.code, end);
    ui.note = make("p", "cs-note cs-text");
    ui.middle.append(ui.editor, ui.note);
  }

  drawHead() {
    const head = this.model.get("head"), ui = this.ui;
    ui.title.replaceChildren(isolated(head.name || ""));
    ui.turns.textContent = head.turns_text;
    this.options(ui.model, head.models || [], head.model);
    this.options(ui.scope, head.scope_options || [], this.model.get("scope"));
    ui.rules.textContent = head.rules_text;
    ui.chip.textContent = head.drift_label;
    ui.chip.hidden = !head.drift_label;
    ui.figures.replaceChildren(...(head.figures || []).map((/** @type {any} */ figure) => {
      const box = make("div", "cs-fig");
      box.append(make("b", figure.tone ? "cs-" + figure.tone : "", figure.value),
        make("span", "", figure.label));
      return box;
    }));
    ui.foot.replaceChildren(...(head.notes || []).map((/** @type {string} */ note) => {
      const line = make("span", "cs-text");
      line.append(isolated(note));
      return line;
    }));
    for (const [name, able] of [["undo", head.can_undo], ["redo", head.can_redo], ["reset", head.edited]]) {
      ui[name].setAttribute("aria-disabled", String(!able));
    }
  }

  /** @param {HTMLSelectElement} select @param {{value: string, label: string}[]} options @param {string} value */
  options(select, options, value) {
    const now = JSON.stringify(options);
    if (select.dataset.now !== now) {
      select.dataset.now = now;
      select.replaceChildren(...options.map((option) => {
        const node = /** @type {HTMLOptionElement} */ (make("option", "", option.label));
        node.value = option.value;
        return node;
      }));
    }
    select.value = value;
  }

  drawTimeline() {
    const line = this.model.get("timeline"), ui = this.ui, turn = this.model.get("turn");
    const totals = line.totals || [], n = totals.length;
    const width = ui.time.clientWidth, height = ui.time.clientHeight;
    if (!n || !width) return;
    const ctx = sized(ui.timeCanvas, width, height);
    const { step, bar } = barLayout(n, width);
    const top = 30, most = totals.reduce((/** @type {number} */ a, /** @type {number} */ b) => Math.max(a, b), 1);
    const scale = (height - top - 2) / most;
    const order = ["hit", "expired", "unmarked", "repaid", "new", "rounding"];
    for (let i = 0; i < n; i += 1) {
      let y = height - 1;
      for (const cause of order) {
        const h = line.tokens[line.causes.indexOf(cause)][i] * scale;
        fillCause(ctx, cause, this.colours, i * step, y - h, bar, h);
        y -= h;
      }
    }
    ctx.fillStyle = this.colours.fg;
    ctx.fillRect(0, height - 1, width, 1);
    ctx.font = "10.5px " + this.colours.sans;
    ctx.textAlign = "center";
    let free = -1e9;
    for (const mark of line.marks || []) {
      const x = Math.min(width - 40, Math.max(30, (mark.turn + 0.5) * step));
      if (x - free < 60) continue;
      free = x;
      ctx.fillStyle = mark.tone === "lost" ? this.colours.lost : this.colours.fg;
      ctx.fillText(visible(mark.text) + " ▾", x, height - 6 - totals[mark.turn] * scale);
    }
    const tall = totals[turn] * scale + 8;
    Object.assign(ui.timeFrame.style, { left: `${turn * step - 2}px`, width: `${bar + 4}px`,
      top: `${height - tall}px`, height: `${tall}px` });
    ui.time.setAttribute("aria-valuemin", "1");
    ui.time.setAttribute("aria-valuemax", String(n));
    ui.time.setAttribute("aria-valuenow", String(turn + 1));
    ui.time.setAttribute("aria-valuetext", line.labels[turn]);
    ui.where.textContent = `turn ${turn + 1} of ${n}`;
    const shown = line.causes.filter((/** @type {string} */ cause, /** @type {number} */ c) =>
      c < 4 || line.tokens[c].some((/** @type {number} */ t) => t > 0));
    ui.keys.replaceChildren(...shown.map((/** @type {keyof typeof NAMES} */ cause) => {
      const key = make("span", "cs-key");
      key.append(this.swatch(cause), make("span", "", NAMES[cause]));
      return key;
    }));
  }

  /** @param {string} cause */
  swatch(cause) {
    const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "cs-swatch"));
    fillCause(sized(canvas, 12, 12), cause, this.colours, 0, 0, 12, 12);
    return canvas;
  }

  /** @param {MouseEvent} event */
  turnAt(event) {
    const n = (this.model.get("timeline").totals || []).length;
    const box = this.ui.time.getBoundingClientRect();
    return Math.min(n - 1, Math.floor(((event.clientX - box.left) / box.width) * n));
  }

  /** @param {MouseEvent} event */
  hover(event) {
    const ui = this.ui, at = this.turnAt(event);
    ui.tip.textContent = (this.model.get("timeline").labels || [])[at] || "";
    ui.tip.hidden = !ui.tip.textContent;
    const box = ui.time.getBoundingClientRect();
    const x = Math.min(event.clientX - box.left + 12, box.width - ui.tip.offsetWidth - 4);
    Object.assign(ui.tip.style, { left: `${Math.max(0, x)}px`, top: "0px" });
  }

  /** @param {KeyboardEvent} event */
  timeKey(event) {
    const n = (this.model.get("timeline").totals || []).length, turn = this.model.get("turn");
    /** @type {Record<string, number>} */
    const to = { ArrowLeft: turn - 1, ArrowDown: turn - 1, ArrowRight: turn + 1, ArrowUp: turn + 1,
      Home: 0, End: n - 1, PageUp: turn - 10, PageDown: turn + 10 };
    if (!(event.key in to)) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(to[event.key]);
  }

  /** @param {boolean} fresh */
  drawZones(fresh) {
    const blocks = this.model.get("blocks");
    if (!blocks.zones) return;
    for (const zone of blocks.zones) {
      const view = this.ui.zoneViews[zone.zone];
      view.title.textContent = zone.title;
      view.subtitle.textContent = zone.subtitle;
      [view.low, view.high] = zone.rows;
      if (fresh) view.ends = offsetsOf(blocks.tokens.slice(view.low, view.high).map(rowHeight));
      view.stack.style.height = `${Math.max(MIN_ROW, view.ends[view.ends.length - 1])}px`;
      view.stack.setAttribute("aria-label", `${zone.title}, ${view.high - view.low} blocks`);
      this.reveal(view);
      this.drawRows(zone.zone);
    }
  }

  /** Scroll the chosen row into its zone's window. @param {any} view */
  reveal(view) {
    const at = this.model.get("selected") - view.low;
    if (at < 0 || at >= view.high - view.low) return;
    const top = view.ends[at], bottom = view.ends[at + 1], box = view.scroll;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
  }

  /** @param {string} zone */
  drawRows(zone) {
    const view = this.ui.zoneViews[zone], blocks = this.model.get("blocks");
    const selected = this.model.get("selected"), count = view.high - view.low;
    const top = view.scroll.scrollTop, height = view.scroll.clientHeight || 400;
    const [first, last] = visibleRange(view.ends, top - 100, height + 200);
    const focused = view.rows.contains(document.activeElement);
    const nodes = [];
    for (let i = first; i < Math.min(count, last); i += 1) {
      const at = view.low + i, row = make("div", "cs-row");
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(at === selected));
      row.setAttribute("aria-setsize", String(count));
      row.setAttribute("aria-posinset", String(i + 1));
      row.tabIndex = at === selected || (i === 0 && (selected < view.low || selected >= view.high)) ? 0 : -1;
      row.dataset.at = String(at);
      row.style.top = `${view.ends[i]}px`;
      row.style.height = `${view.ends[i + 1] - view.ends[i]}px`;
      row.append(isolated(blocks.name[at], "cs-clip"));
      if (blocks.badge[at]) row.append(make("span", "cs-badge", blocks.badge[at]));
      row.append(make("span", "cs-count", blocks.tokens_text[at]));
      row.onclick = () => this.pick(at);
      nodes.push(row);
    }
    if (!count) nodes.push(make("div", "cs-none", "empty"));
    this.addLines(view, blocks, nodes);
    view.rows.replaceChildren(...nodes);
    if (focused) /** @type {HTMLElement | null} */ (view.rows.querySelector('[aria-selected="true"]'))?.focus();
    Object.assign(view.canvas.style, { top: `${top}px`, height: `${height}px` });
    const ctx = sized(view.canvas, 16, height);
    for (let i = first; i < Math.min(count, last); i += 1) {
      let y = view.ends[i] - top;
      const whole = view.ends[i + 1] - view.ends[i], tokens = Math.max(1, blocks.tokens[view.low + i]);
      for (const [cause, size] of blocks.spans[view.low + i]) {
        const h = (size / tokens) * whole;
        fillCause(ctx, this.model.get("timeline").causes[cause], this.colours, 0, y, 16, h);
        y += h;
      }
    }
  }

  /** @param {any} view @param {any} blocks @param {HTMLElement[]} nodes */
  addLines(view, blocks, nodes) {
    const broken = blocks.break;
    if (blocks.boundary !== null && blocks.boundary > view.low && blocks.boundary < view.high) {
      const line = make("div", "cs-bound");
      line.style.top = `${view.ends[blocks.boundary - view.low]}px`;
      line.append(make("span", "", "dynamic boundary"));
      nodes.push(line);
    }
    if (broken && broken.block >= view.low && broken.block < view.high) {
      const i = broken.block - view.low, line = make("div", "cs-break");
      const y = view.ends[i] + broken.share * (view.ends[i + 1] - view.ends[i]);
      line.style.top = `${Math.max(12, y)}px`;
      line.append(make("span", "cs-clip", broken.text));
      nodes.push(line);
    }
  }

  /** @param {KeyboardEvent} event */
  rowKey(event) {
    const blocks = this.model.get("blocks"), at = this.model.get("selected");
    if (event.altKey) { this.moveKey(event); return; }
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: blocks.name.length - 1 }[event.key];
    if (to === undefined && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    if (to === undefined) {
      const row = /** @type {HTMLElement} */ (event.target).dataset.at;
      if (row !== undefined) this.pick(Number(row));
      return;
    }
    const next = Math.max(0, Math.min(blocks.name.length - 1, to));
    this.pick(next);
    this.dirty.delete("selected");
    this.drawZones(false);
    /** @type {HTMLElement | null} */ (this.root.querySelector(`.cs-row[data-at="${next}"]`))?.focus();
  }

  /** @param {KeyboardEvent} event */
  moveKey(event) {
    if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(event.key === "ArrowUp" ? -1 : 1);
  }

  /** @param {number} step */
  move(step) {
    const editor = this.model.get("editor");
    if (step < 0 ? editor.can_up : editor.can_down) this.ask(step < 0 ? "move_up" : "move_down");
  }

  /** @param {KeyboardEvent} event */
  segKey(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const editor = this.model.get("editor"), all = editor.stabilities;
    const to = all[(all.indexOf(editor.stability) + step + all.length) % all.length];
    this.refocus = to;
    this.ask("stability", to);
  }

  type() {
    const ui = this.ui;
    if (ui.text.readOnly) return;
    this.seq += 1;
    this.typed = this.seq;
    this.model.set("edit", { seq: this.seq, key: this.key, text: ui.text.value });
    this.model.save_changes();
    this.drawBackdrop();
  }

  drawEditor() {
    const editor = this.model.get("editor"), ui = this.ui;
    ui.name.replaceChildren(isolated(editor.name || "nothing chosen"));
    const load = editor.key !== this.key && !this.composing;
    if (load) {
      this.key = editor.key;
      if (ui.text.value !== editor.text) ui.text.value = editor.text;
    }
    ui.text.readOnly = !editor.editable;
    ui.text.setAttribute("aria-label", `Text of section ${visible(editor.name || "")}`);
    ui.reason.textContent = editor.readonly_reason;
    ui.reason.hidden = !editor.readonly_reason;
    ui.place.textContent = editor.position_text;
    ui.up.setAttribute("aria-disabled", String(!editor.can_up));
    ui.down.setAttribute("aria-disabled", String(!editor.can_down));
    ui.seg.hidden = !editor.stability;
    ui.seg.replaceChildren(...editor.stabilities.map((/** @type {string} */ word) => {
      const button = make("button", "", word), on = word === editor.stability;
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
      button.onclick = () => this.ask("stability", word);
      return button;
    }));
    if (this.refocus) {
      /** @type {HTMLElement | null} */ (ui.seg.querySelector('[aria-checked="true"]'))?.focus();
      this.refocus = "";
    }
    ui.note.replaceChildren(isolated(editor.note || ""));
    this.drawBackdrop();
  }

  /** Line numbers and marks of the lines in sight. */
  drawBackdrop() {
    const editor = this.model.get("editor"), ui = this.ui, text = ui.text.value;
    const lines = text.split("\n"), top = ui.text.scrollTop, left = ui.text.scrollLeft;
    const first = Math.max(0, Math.floor(top / LINE) - 2);
    const last = Math.min(lines.length, first + Math.ceil((ui.code.clientHeight || 266) / LINE) + 4);
    ui.code.style.setProperty("--gutter", `${20 + String(lines.length).length * 8}px`);
    const numbers = [], shown = [];
    // Marks belong to the text they were computed for; until the answer to newer typing they wait.
    const marks = text === editor.text ? editor.marks : [];
    let at = 0;
    for (let i = 0; i < last; i += 1) {
      const end = at + lines[i].length;
      if (i >= first) {
        const y = `${9 + i * LINE - top}px`;
        const number = make("div", "", String(i + 1));
        number.style.top = y;
        numbers.push(number);
        const inside = marks.filter((/** @type {number[]} */ m) => m[0] <= end && m[1] >= at)
          .map((/** @type {number[]} */ m) => [Math.max(0, m[0] - at), Math.min(lines[i].length, m[1] - at)]);
        if (inside.length) {
          const row = make("div");
          row.style.top = y;
          row.style.left = `${6 - left}px`;
          for (const piece of markPieces(lines[i], inside)) {
            row.append(piece.mark ? make("mark", piece.text ? "" : "cs-edge", piece.text)
              : make("span", "", piece.text));
          }
          shown.push(row);
        }
      }
      at = end + 1;
    }
    ui.lines.replaceChildren(...numbers);
    ui.marks.replaceChildren(...shown);
  }

  drawSide() {
    const side = this.model.get("side"), cards = [];
    if (!side.diagnosis) return;
    const card = (/** @type {string} */ title) => {
      const box = make("section", "cs-card");
      box.append(make("h3", "", title));
      cards.push(box);
      return box;
    };
    const diagnosis = card("Diagnosis"), told = side.diagnosis;
    const title = make("p", "cs-title cs-text" + (told.tone ? ` cs-${told.tone}` : ""));
    title.append(isolated(told.title));
    const text = make("p", "cs-muted cs-text");
    text.append(isolated(told.body));
    diagnosis.append(title, text);
    if (told.also.length) {
      const list = make("ul", "cs-also");
      for (const line of told.also) list.append(make("li", "cs-text", visible(line)));
      diagnosis.append(list);
    }
    card("This turn").append(this.table(side.lines));
    if (side.compare) {
      card(side.compare.title).append(this.table(side.compare.rows.map(
        (/** @type {any} */ row) => ({ ...row, cost_text: row.value, cause: "" }))));
    }
    if (side.multiple) {
      const price = card("The price of that byte"), line = make("p");
      line.append(make("b", "cs-big", side.multiple.value), side.multiple.text);
      price.append(line, make("p", "cs-muted", side.multiple.more));
    }
    const audit = card("Audit"), list = make("ul", "cs-audit");
    for (const row of side.audit) {
      const item = make("li"), link = make("button", "", row.turn_text);
      link.onclick = () => this.go(row.turn);
      item.append(link, isolated(row.text, "cs-text"));
      list.append(item);
    }
    audit.append(side.audit.length ? list : make("p", "cs-muted", "No drift and no rebuild."));
    this.ui.side.replaceChildren(...cards);
  }

  /** @param {any[]} rows */
  table(rows) {
    const table = make("table"), body = make("tbody");
    for (const row of rows) {
      const line = make("tr", row.total ? "cs-total" : ""), name = make("th");
      name.setAttribute("scope", "row");
      if (row.cause) name.append(this.swatch(row.cause));
      name.append(row.name);
      line.append(name);
      if (row.tokens_text !== undefined) line.append(make("td", "", row.tokens_text));
      line.append(make("td", "", row.cost_text));
      body.append(line);
    }
    table.append(body);
    return table;
  }
}

/** @param {{model: any, el: HTMLElement}} context */
function render({ model, el }) {
  const view = new View(model, el);
  return () => view.destroy();
}

export default { render };
