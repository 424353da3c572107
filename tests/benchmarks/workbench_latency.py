"""From a keystroke to the redrawn workbench, in real JupyterLab, beside an empty round trip.

    python tests/benchmarks/workbench_latency.py            # the bundled session
    python tests/benchmarks/workbench_latency.py --turns 1000
    python tests/benchmarks/workbench_latency.py --stock    # without the launcher's websocket

Both are timed in the page, from the input event to the end of the animation frame that draws the
answer, one stroke at a time with a pause as of a fast typist. The kernel's share is the time inside
the workbench's own handler. Needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "browser"))
import conftest as harness  # type: ignore[import-not-found]
import nbformat
from playwright.sync_api import sync_playwright

STROKES = 50
PAUSE_MS = 120
PROBE = '''
import time
_import_start = time.perf_counter()
import codesmith_lab as lab
_import_ms = (time.perf_counter() - _import_start) * 1e3
import anywidget, traitlets
from codesmith_lab.labs.workbench import Workbench


class Probe(anywidget.AnyWidget):
    _esm = """
    function render({ model, el }) {
      const field = document.createElement("textarea");
      field.className = "probe";
      field.addEventListener("input", () => {
        model.set("text", field.value);
        model.save_changes();
      });
      const show = () => requestAnimationFrame(() => {
        el.dataset.echo = model.get("echo");
        el.dataset.kernel = JSON.stringify(model.get("kernel_ms"));
        el.dataset.open = String(model.get("open_ms"));
      });
      for (const name of ["echo", "kernel_ms", "open_ms"]) model.on(`change:${name}`, show);
      el.className = "probe-box";
      el.append(field);
      show();
    }
    export default { render };
    """
    text = traitlets.Unicode("").tag(sync=True)
    echo = traitlets.Int(0).tag(sync=True)
    kernel_ms = traitlets.List().tag(sync=True)
    open_ms = traitlets.Float(0).tag(sync=True)

    @traitlets.observe("text")
    def _answer(self, change):
        self.echo += 1


probe = Probe()
handler = Workbench._on_edit
kernel_ms = []


def timed(self, change):
    start, busy = time.perf_counter(), time.thread_time()
    handler(self, change)
    kernel_ms.append(
        [(time.perf_counter() - start) * 1e3, (time.thread_time() - busy) * 1e3]
    )


Workbench._on_edit = timed
'''
STORY = """
session = lab.samples.clock_story()
"""
LONG = """
import pathlib, tempfile
from codesmith_lab.samples.agent_log import agent_log_lines
path = pathlib.Path(tempfile.mkdtemp()) / "long.jsonl"
with path.open("wb") as out:
    for line in agent_log_lines({turns}, compact_every=50, drift_every=40, blocks_per_turn=5):
        out.write(line + b"\\n")
session = lab.load(path)
"""
OPEN = """
start = time.perf_counter()
bench = lab.Workbench(session)
probe.open_ms = (time.perf_counter() - start) * 1e3
{pick}
bench
"""
REPORT = """
probe.kernel_ms = kernel_ms
"""
# Times one stroke: from the input event to the frame in which the answer was drawn.
TIMER = """
([field, box, attribute]) => { window.stroke = new Promise((done) => {
  const node = document.querySelector(field), seen = document.querySelector(box);
  let start = 0;
  node.addEventListener("input", () => { start = performance.now(); }, { once: true });
  const watch = new MutationObserver(() => {
    if (!start) return;
    watch.disconnect();
    done([performance.now() - start, window.longestFrame]);
    window.longestFrame = 0;
  });
  watch.observe(seen, { attributeFilter: [attribute] });
}); }
"""
FRAMES = """
window.longestFrame = 0;
const plain = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (fn) => plain((at) => {
  const start = performance.now();
  fn(at);
  window.longestFrame = Math.max(window.longestFrame, performance.now() - start);
});
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, help="a made log of so many turns instead")
    parser.add_argument("--stock", action="store_true", help="without the launcher's websocket")
    options = parser.parse_args()
    chromium = harness.find_chromium()
    if chromium is None:
        print("Chromium is not installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "lab"), Path(folder, "home")
        root.mkdir()
        home.mkdir()
        notebook = root / "bench.ipynb"
        nbformat.write(make_notebook(options.turns), notebook)
        with harness.running_lab(root, home, options.stock) as server, sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=harness.CHROMIUM_FLAGS)
            page = browser.new_page(viewport={"width": 1500, "height": 1300})
            page.add_init_script(FRAMES)
            page.goto(f"{server.base}/lab/tree/bench.ipynb?token={server.token}&reset")
            page.wait_for_function(harness.KERNEL_IDLE)
            measure(page)
            browser.close()
    print(f"import codesmith_lab: {import_ms():.0f} ms beyond Python's own start")
    return 0


def make_notebook(turns: int | None) -> Any:
    session = STORY if turns is None else LONG.format(turns=turns)
    pick = "" if turns is None else f"bench.turn = {turns // 2}"
    pick += "\nbench.selected = [b.name for b in bench._turns[bench.turn].prompt.blocks].index("
    pick += "'environment')" if turns is None else "next(s.name for s in bench._turns[bench.turn]"
    pick += "" if turns is None else ".prompt.blocks if s.kind == 'section'))"
    cells = [PROBE + "probe", session, OPEN.format(pick=pick), REPORT]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return book


def run_cell(page: Any, index: int) -> None:
    page.evaluate(
        """async (index) => {
          const panel = jupyterapp.shell.currentWidget;
          await panel.context.ready;
          panel.content.activeCellIndex = index;
          await jupyterapp.commands.execute("notebook:run-cell");
        }""",
        index,
    )


def measure(page: Any) -> None:
    run_cell(page, 0)
    page.wait_for_selector(".probe")
    run_cell(page, 1)
    start = page.evaluate("performance.now()")
    run_cell(page, 2)
    page.wait_for_selector('.cslab[data-ready="1"]')
    shown_ms = page.evaluate("performance.now()") - start
    open_ms = float(page.locator(".probe-box").get_attribute("data-open"))
    size = page.locator(".cslab .cs-walk").first.inner_text().splitlines()[0]
    print(
        f"opened ({size}): {open_ms:.0f} ms in the kernel, {shown_ms:.0f} ms to the first picture"
    )
    empty, _ = strokes(page, ".probe", ".probe-box", "data-echo")
    bench, frames = strokes(page, ".cslab textarea", ".cslab", "data-ack")
    run_cell(page, 3)
    page.wait_for_function("document.querySelector('.probe-box').dataset.kernel !== '[]'")
    kernel = json.loads(page.locator(".probe-box").get_attribute("data-kernel"))
    print(f"{'ms over ' + str(STROKES) + ' strokes':<32}{'median':>8}{'p95':>8}{'max':>8}")
    for name, values in (
        ("empty round trip", empty),
        ("stroke to redrawn workbench", bench),
        ("of it, kernel", [wall for wall, _ in kernel[-STROKES:]]),
        ("of it, kernel's processor time", [busy for _, busy in kernel[-STROKES:]]),
        ("of it, longest animation frame", frames),
    ):
        low, high, most = summary(values)
        print(f"{name:<32}{low:>8.1f}{high:>8.1f}{most:>8.1f}")
    (low, high, _), (low0, high0, _) = summary(bench), summary(empty)
    print(
        f"above the empty round trip: {low - low0:.1f} ms at the median, {high - high0:.1f} at p95"
    )
    print(f"ratio to it: {low / low0:.2f} at the median, {high / high0:.2f} at p95")


def strokes(page: Any, field: str, box: str, attribute: str) -> tuple[list[float], list[float]]:
    """Milliseconds of each stroke, and its longest frame; the first three warm up."""
    page.locator(field).first.focus()
    page.keyboard.press("Control+Home")
    times, frames = [], []
    for number in range(STROKES + 3):
        page.evaluate(TIMER, [field, box, attribute])
        page.keyboard.press("abcdefghij"[number % 10])
        took, frame = page.evaluate("() => window.stroke")
        if number >= 3:
            times.append(took)
            frames.append(frame)
        page.wait_for_timeout(PAUSE_MS)
    return times, frames


def summary(values: list[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(0.95 * len(ordered))], ordered[-1]


def import_ms() -> float:
    """Median of five fresh processes, each less an empty one."""
    code = "import time; s = time.perf_counter(); import codesmith_lab; "
    code += "print((time.perf_counter() - s) * 1e3)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    return statistics.median(runs)


if __name__ == "__main__":
    sys.exit(main())
