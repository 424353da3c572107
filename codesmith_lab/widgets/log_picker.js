// Hands files from the browser to Python, piece by piece: dropped here, or chosen with the button.
// Python asks for each piece, so that nothing is sent faster than it is taken.

/**
 * @typedef {object} State
 * @property {string} status
 * @property {string} error
 * @property {boolean} busy
 * @property {number} chunk_bytes
 */
/** @typedef {{kind: "send", offset: number} | {kind: "stop"}} Answer */

/** The bytes of the next piece. @param {number} size @param {number} offset @param {number} chunk */
export function pieceOf(size, offset, chunk) {
  return [Math.min(offset, size), Math.min(size, offset + Math.max(1, chunk))];
}

/** @type {import("@anywidget/types").Render<State>} */
function render({ model, el }) {
  const stop = new AbortController();
  const { signal } = stop;
  const box = document.createElement("div");
  box.className = "cslab-pick";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Open a log");
  box.setAttribute("data-lm-suppress-shortcuts", "true");
  const label = document.createElement("label");
  const words = document.createElement("span");
  words.textContent = "Drop a log here, or choose one:";
  const input = document.createElement("input");
  input.type = "file";
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  const error = document.createElement("p");
  error.className = "cslab-pick-error";
  error.setAttribute("role", "alert");
  label.append(words, input);
  box.append(label, status, error);

  /** @type {File | null} */
  let file = null;
  let own = "";
  const draw = () => {
    status.textContent = model.get("status");
    status.hidden = !status.textContent;
    error.textContent = own || model.get("error");
    error.hidden = !error.textContent;
    input.disabled = model.get("busy");
    box.dataset.busy = model.get("busy") ? "1" : "";
    box.dataset.ready = "1";
  };
  /** @param {FileList | null | undefined} files */
  const take = (files) => {
    if (!files?.length || model.get("busy")) return;
    own = files.length > 1 ? "One log at a time: the first was taken." : "";
    file = files[0];
    draw();
    model.send({ kind: "file", name: file.name, size: file.size });
  };
  /** @param {Answer} answer */
  const heard = async (answer) => {
    if (answer.kind === "stop" || !file) {
      file = null;
      input.value = "";
      return;
    }
    const [from, to] = pieceOf(file.size, answer.offset, model.get("chunk_bytes"));
    try {
      const bytes = await file.slice(from, to).arrayBuffer();
      model.send({ kind: "piece", offset: from }, undefined, [bytes]);
    } catch (problem) {
      own = `The browser could not read the file: ${problem instanceof Error ? problem.message : problem}`;
      draw();
      model.send({ kind: "cancel" });
    }
  };
  input.addEventListener("change", () => take(input.files), { signal });
  box.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.dataset.over = "1";
  }, { signal });
  box.addEventListener("dragleave", () => { box.dataset.over = ""; }, { signal });
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation();
    box.dataset.over = "";
    take(event.dataTransfer?.files);
  }, { signal });
  model.on("msg:custom", heard);
  for (const name of /** @type {const} */ (["status", "error", "busy"])) model.on(`change:${name}`, draw);
  signal.addEventListener("abort", () => {
    model.off("msg:custom", heard);
    for (const name of /** @type {const} */ (["status", "error", "busy"])) model.off(`change:${name}`, draw);
  });
  el.append(box);
  draw();
  return () => {
    stop.abort();
    box.remove();
  };
}

export default { render };
