// @ts-check
/**
 * States of the workbench and a stand-in for the widget model, for the harness page and the tests.
 * The numbers only have to look like a session; nothing here is a result.
 */

const CAUSES = ["hit", "new", "repaid", "rounding", "expired", "unmarked"];

/** @param {number} seed */
function dice(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** @param {number} n */
const count = (n) => n.toLocaleString("en-US");

/** @param {number} turns */
function timeline(turns) {
  const roll = dice(7);
  /** @type {number[][]} */
  const tokens = CAUSES.map(() => []);
  /** @type {number[]} */ const totals = [];
  /** @type {string[]} */ const labels = [];
  const drift = Math.round(turns * 0.18);
  const compact = Math.round(turns * 0.76);
  let size = 7300;
  for (let t = 0; t < turns; t += 1) {
    const grown = Math.round(((200 + roll() * 900) * 40) / turns);
    size = t === compact ? 9200 : size + grown;
    const fresh = t === 0 ? size - 39 : t === compact ? Math.round(size * 0.8) : Math.max(grown, Math.round(size * 0.06));
    const hit = t === 0 ? 0 : t >= drift ? Math.min(4352, size - fresh) : Math.max(0, size - fresh - 39);
    const rest = Math.min(39 + Math.round(roll() * 60), size - fresh - hit < 0 ? 0 : size - fresh - hit);
    const repaid = Math.max(0, size - hit - fresh - rest);
    const parts = [hit, fresh, repaid, rest, 0, 0];
    if (turns === 40 && t === 35) [parts[0], parts[4]] = [0, hit];
    parts.forEach((amount, cause) => tokens[cause].push(amount));
    const total = parts.reduce((a, b) => a + b, 0);
    totals.push(total);
    labels.push(`turn ${t + 1}: ${count(total)} tokens, ${count(parts[0])} hit, ${count(repaid)} paid again`);
  }
  const marks = [{ turn: drift, text: "sys", tone: "lost" }, { turn: compact, text: "/compact", tone: "" }];
  if (turns > 100) for (let t = 40; t < turns; t += 83) marks.push({ turn: t, text: `tools ${t}`, tone: "lost" });
  return { causes: CAUSES, tokens, totals, labels, marks };
}

/** @param {number} turn @param {number} messages @param {string[]} order */
function blocks(turn, messages, order) {
  const roll = dice(turn + 3);
  /** @type {Record<string, [number, string]>} */
  const sections = {
    constitution: [3412, "static"], "project context": [961, "workspace"], environment: [48, "dynamic"],
    skills: [702, "workspace"], "tool catalog, 20 tools": [2240, "static"],
  };
  const name = [...order];
  const badge = order.map((one) => sections[one]?.[1] ?? "static");
  const tokens = order.map((one) => sections[one]?.[0] ?? 120);
  const kinds = ["user", "assistant, 2 tool calls", "tool read_file", "tool grep", "assistant"];
  for (let k = 0; k < messages; k += 1) {
    name.push(kinds[k % kinds.length]);
    badge.push("");
    tokens.push(Math.round(20 + 2600 * roll() ** 4));
  }
  name.push("user, this turn");
  badge.push("");
  tokens.push(148);
  const at = order.indexOf("environment");
  const n = name.length;
  const drifted = turn >= 7;
  const spans = tokens.map((amount, k) => {
    if (k === n - 1) return [[1, amount - 39], [3, 39]];
    if (!drifted || k < at) return [[0, amount]];
    if (k === at) return [[0, Math.round(amount * 0.3)], [2, amount - Math.round(amount * 0.3)]];
    return [[2, amount]];
  });
  return {
    turn,
    zones: [
      { zone: "pinned", title: "PinnedPrefix", subtitle: "9f31c07ab2e4 → 4c02d91e77a0", rows: [0, order.length] },
      { zone: "log", title: "AppendLog", subtitle: `${count(messages)} messages, push only`, rows: [order.length, n - 1] },
      { zone: "scratch", title: "TurnScratch", subtitle: "cleared at the turn boundary", rows: [n - 1, n] },
    ],
    name, badge, tokens,
    tokens_text: tokens.map(count),
    spans,
    editable: name.map((_, k) => k < order.length),
    boundary: at,
    break: drifted ? { block: at, share: 0.62, text: "first changed byte 17,204 · token 4,391" } : null,
  };
}

const ENVIRONMENT = "<environment>\nPlatform: linux\nWorking directory: /workspace\nCurrent time: 2026-08-25 23:51\n</environment>";

/** @param {string} name @param {number} block @param {string[]} order @param {number} seq */
function editor(name, block, order, seq, text = name === "environment" ? ENVIRONMENT : longText(name)) {
  const editable = block < order.length;
  const at = text.indexOf("23:51");
  return {
    block, key: `${name}#0`, name, text, editable,
    readonly_reason: editable ? "" : "The log is append only: a message that was sent stays as it is.",
    marks: at >= 0 ? [[at + 3, at + 5]] : name === "constitution" ? [[400, 412]] : [],
    seq,
    stability: editable ? (name === "environment" ? "dynamic" : "static") : "",
    stabilities: ["static", "workspace", "session", "dynamic"],
    position_text: editable ? `${block + 1} of ${order.length}` : "",
    can_up: editable && block > 0, can_down: editable && block < order.length - 1,
    note: name === "environment" ? "Was 23:47 on turn 22. This line has moved on 32 of 40 turns." : "",
  };
}

/** @param {string} name */
function longText(name) {
  if (name !== "constitution") return `# ${name}\n\nOne line about ${name}.\n`;
  return Array.from({ length: 297 }, (_, k) => `${k + 1}. Keep changes small, test them, and say why. Rule ${k + 1}.`).join("\n");
}

const SIDE = {
  diagnosis: {
    title: "prefix cache invalidated: system prompt changed",
    body: "section environment, line 4, column 27. 22,945 tokens after it are paid again.",
    tone: "lost", also: [],
  },
  lines: [
    { name: "hit", cause: "hit", tokens_text: "4,352", cost_text: "$0.00012", total: false },
    { name: "new", cause: "new", tokens_text: "148", cost_text: "$0.00002", total: false },
    { name: "paid again", cause: "repaid", tokens_text: "22,906", cost_text: "$0.00321", total: false },
    { name: "rest of a unit", cause: "rounding", tokens_text: "39", cost_text: "$0.00001", total: false },
    { name: "output", cause: "", tokens_text: "511", cost_text: "$0.00014", total: false },
    { name: "total", cause: "", tokens_text: "27,956", cost_text: "$0.00350", total: true },
  ],
  multiple: {
    value: "27×", text: "this turn's input, against the turn with no drift.",
    more: "Left as it is, the 17 turns to come pay $0.0547 more.",
  },
  audit: [
    { turn_text: "turn 8–39", text: "drift sys ×32", turn: 7 },
    { turn_text: "turn 31", text: "manual compaction (/compact), 84 → 6 msgs", turn: 30 },
  ],
  compare: null,
};

/** Text with everything a log can hold against us. */
export const HOSTILE = "‮evil<script>alert(1)</script>\u0000\u001b[31m\u200b שלום مرحبا 👩‍👩‍👧‍👦 z̷̧̨͚̫͖̲͈͖a " + "W".repeat(300);

/**
 * @param {{turns?: number, messages?: number, turn?: number, hostile?: boolean, edited?: boolean}} [options]
 * @returns {Record<string, any>}
 */
export function sampleState({ turns = 40, messages = 66, turn = 22, hostile = false, edited = false } = {}) {
  const order = ["constitution", "project context", "environment", "skills", "tool catalog, 20 tools"];
  /** @type {Record<string, any>} */
  const state = {
    head: {
      name: "session.jsonl", turns_text: `${count(turns)} turns`, model: "deepseek-v4-flash",
      models: [{ value: "deepseek-v4-flash", label: "deepseek-v4-flash" }, { value: "gpt-5.1", label: "gpt-5.1" }],
      rules_text: "automatic prefix cache, whole 128-token units", drift_label: "sys",
      figures: [
        { value: "61.8 %", label: "cache hit", tone: "" }, { value: "$0.1273", label: "this session", tone: "" },
        { value: "+$0.0894", label: "against the same session with no drift", tone: "lost" },
      ],
      notes: ["prices of 2026-08-25, genai-prices 0.2.3", "tokens: exact for text, framing approximate"],
      scope_options: [
        { value: "from_here", label: "from this turn on" }, { value: "this_turn", label: "to this turn only" },
        { value: "all_turns", label: "to all turns" },
      ],
      edited, can_undo: edited, can_redo: false,
    },
    timeline: timeline(turns), turn, blocks: blocks(turn, messages, order), selected: 2,
    editor: editor("environment", 2, order, 0),
    edit: { seq: 0, key: "", text: "" }, request: { seq: 0, action: "" }, scope: "from_here",
    side: SIDE, advice: { rows: [], note: "", findings: [] }, announce: "", error: "", ack: 0,
  };
  if (edited) {
    const rows = [{ name: "this turn", value: "−$0.0012" }, { name: "whole session", value: "−$0.0871" }];
    state.side = { ...SIDE, compare: { title: "Against the unedited session", rows } };
  }
  if (hostile) {
    state.head = { ...state.head, name: HOSTILE, drift_label: HOSTILE, rules_text: HOSTILE };
    state.blocks.name = state.blocks.name.map(() => HOSTILE);
    state.blocks.break = { ...state.blocks.break, text: HOSTILE };
    state.timeline.marks[0].text = HOSTILE;
    state.editor = { ...state.editor, name: HOSTILE, key: "hostile", text: `${HOSTILE}\n${ENVIRONMENT}`, marks: [[0, 12]] };
    state.side = { ...SIDE, diagnosis: { title: HOSTILE, body: HOSTILE, tone: "lost", also: [HOSTILE] } };
    state.error = HOSTILE;
  }
  return state;
}

/** A model like anywidget's, answering as Python would, but with texts that are only for show. */
export class FakeModel {
  /** @param {Record<string, any>} state @param {{answer?: boolean, delay?: number}} [options] */
  constructor(state, { answer = true, delay = 0 } = {}) {
    this.state = state;
    this.answer = answer;
    this.delay = delay;
    /** @type {Map<string, Set<Function>>} */ this.listeners = new Map();
    /** @type {Set<string>} */ this.unsaved = new Set();
    /** @type {Record<string, any>[]} */ this.sent = [];
    this.order = state.blocks.zones[0] ? state.blocks.name.slice(...state.blocks.zones[0].rows) : [];
    this.key = 0;
  }

  /** @param {string} name */
  get(name) {
    return this.state[name];
  }

  /** @param {string} name @param {any} value */
  set(name, value) {
    this.unsaved.add(name);
    this.update({ [name]: value });
  }

  /** @param {Record<string, any>} values several traits of one message */
  update(values) {
    const changed = Object.keys(values).filter((name) => this.state[name] !== values[name]);
    Object.assign(this.state, values);
    for (const name of changed) for (const listen of this.listeners.get(`change:${name}`) ?? []) listen();
  }

  /** @param {string} event @param {Function} listen */
  on(event, listen) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event)?.add(listen);
  }

  /** @param {string} event @param {Function} listen */
  off(event, listen) {
    this.listeners.get(event)?.delete(listen);
  }

  save_changes() {
    const message = Object.fromEntries([...this.unsaved].map((name) => [name, this.state[name]]));
    this.unsaved.clear();
    this.sent.push(message);
    if (this.answer) setTimeout(() => this.reply(message), this.delay);
  }

  /** @param {Record<string, any>} message */
  reply(message) {
    const { state, order } = this;
    const messages = state.blocks.zones[1].rows[1] - state.blocks.zones[1].rows[0];
    if ("turn" in message) this.update({ blocks: blocks(message.turn, messages, order) });
    if ("selected" in message) {
      const { name } = state.blocks;
      this.update({ editor: editor(name[message.selected] ?? "", message.selected, order, state.ack) });
    }
    if (message.edit && message.edit.key !== state.editor.key) this.update({ ack: message.edit.seq });
    else if (message.edit) {
      const { seq, text } = message.edit;
      const at = text.indexOf("23:");
      const marks = at < 0 ? [] : [[at + 3, Math.min(text.length, at + 5)]];
      this.update({
        editor: { ...state.editor, text, seq, marks }, head: { ...state.head, edited: true, can_undo: true },
        side: { ...state.side, diagnosis: { ...state.side.diagnosis, body: `${count(text.length)} characters now.` } },
        blocks: { ...state.blocks }, timeline: { ...state.timeline }, announce: `edit ${seq}`, ack: seq,
      });
    }
    if (message.request) this.command(message.request);
  }

  /** @param {{seq: number, action: string, value?: string}} request */
  command({ seq, action, value }) {
    const { state, order } = this;
    const at = state.selected;
    const to = action === "move_up" ? at - 1 : action === "move_down" ? at + 1 : at;
    if (to !== at && to >= 0 && to < order.length) {
      [order[at], order[to]] = [order[to], order[at]];
      const messages = state.blocks.zones[1].rows[1] - state.blocks.zones[1].rows[0];
      const moved = { ...state.editor, block: to, position_text: `${to + 1} of ${order.length}`, can_up: to > 0, can_down: to < order.length - 1 };
      this.update({ blocks: blocks(state.turn, messages, order), selected: to, editor: moved });
    }
    if (action === "stability") this.update({ editor: { ...state.editor, stability: value } });
    if (action === "scope") this.update({ scope: value });
    if (action === "model") this.update({ head: { ...state.head, model: value } });
    if (action === "undo" || action === "reset") {
      this.key += 1;
      this.update({ editor: { ...editor("environment", at, order, seq), key: `environment#${this.key}` } });
    }
    this.update({ announce: `${action} done`, ack: seq });
  }
}
