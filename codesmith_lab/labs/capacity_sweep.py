"""A sweep with a progress bar and a button that ends it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets

from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.sweep import sweep
from codesmith_lab.capacity.sweep_result import SweepCancelled, SweepResult
from codesmith_lab.errors import LabError

__all__ = ["CapacitySweep"]


class CapacitySweep(ipywidgets.VBox):  # type: ignore[misc]  # it ships no types
    """Starts a sweep in the background; shows how far it is, and a button that ends it.

    Parameters are those of `codesmith_lab.capacity.sweep`, without `progress` and `cancel`.

    `run.result()` waits for the sweep and gives what it found; interrupting the wait ends it.
    `run.cancel()` does what the button does.
    """

    def __init__(
        self,
        table: ObservationTable,
        parameters: Mapping[str, Sequence[float]],
        **options: Any,
    ) -> None:
        self._bar = ipywidgets.IntProgress(
            value=0, min=0, max=1, description="Sweep", layout={"width": "420px"}
        )
        self._told = ipywidgets.Label("starting")
        self._button = ipywidgets.Button(
            description="Stop", tooltip="End the sweep; nothing is kept"
        )
        self._button.on_click(lambda _: self.cancel())
        super().__init__([ipywidgets.HBox([self._bar, self._button]), self._told])
        self._stop = threading.Event()
        self._found: SweepResult | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(
            target=self._work, args=(table, parameters, options), daemon=True
        )
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has ended, one way or the other."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End the sweep after the pieces under way; `result` then raises SweepCancelled."""
        self._stop.set()
        self._button.disabled = True

    def result(self) -> SweepResult:
        """What the sweep found; waits for it.

        Raises SweepCancelled after a cancel, and what else went wrong as it is.
        """
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.cancel()
            self._thread.join()
            raise
        if self._failure is not None:
            raise self._failure
        if self._found is None:
            raise LabError("the sweep ended without a result; start it again")
        return self._found

    def _work(
        self,
        table: ObservationTable,
        parameters: Mapping[str, Sequence[float]],
        options: Mapping[str, Any],
    ) -> None:
        try:
            self._found = sweep(
                table, parameters, progress=self._progress, cancel=self._stop, **options
            )
            self._bar.bar_style = "success"
            self._told.value = f"done: {self._bar.max:,} configurations"
        except SweepCancelled as stopped:
            self._failure = stopped
            self._bar.bar_style = "warning"
            self._told.value = f"stopped after {stopped.done:,} of {stopped.total:,} configurations"
        except Exception as error:  # told where the result is asked for
            self._failure = error
            self._bar.bar_style = "danger"
            self._told.value = str(error)
        finally:
            self._button.disabled = True

    def _progress(self, done: int, total: int) -> None:
        self._bar.max, self._bar.value = total, done
        self._told.value = f"{done:,} of {total:,} configurations"
