"""How good a probability of failure is, against labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from codesmith_lab.errors import LabError

__all__ = ["CostCurve", "Reliability", "Scores", "need_sklearn"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def need_sklearn() -> None:
    """Raises LabError with the command to run where scikit-learn is missing."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise LabError(
            'calibration needs scikit-learn; run: pip install "codesmith-lab[capacity]"'
        ) from None


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """A reliability diagram: rows of equal width in predicted probability, empty ones left out.

    predicted, observed: mean probability and share of failures in each bin. counts: its rows.
    edges: (bins + 1,) of all bins.
    """

    predicted: FloatArray
    observed: FloatArray
    counts: npt.NDArray[np.int64]
    edges: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Expected cost (USD an observation) of an alarm above each threshold.

    thresholds: rising, from 0. cheapest: index of the least cost, the lowest of equals.
    """

    thresholds: FloatArray
    expected_usd: FloatArray
    missed: npt.NDArray[np.int64]
    false_alarms: npt.NDArray[np.int64]
    cheapest: int

    @property
    def best_threshold(self) -> float:
        """The threshold of the least expected cost."""
        return float(self.thresholds[self.cheapest])


@dataclass(frozen=True, eq=False)
class Scores:
    """Probabilities of failure and what happened, (n,) each.

    name: what gave the probabilities, for people.

    Raises LabError for labels of one class only: then nothing can be told apart.
    """

    name: str
    p_fail: FloatArray
    failed: BoolArray

    def __post_init__(self) -> None:
        failures = int(self.failed.sum())
        if failures in (0, len(self.failed)):
            raise LabError(
                f"all {len(self.failed)} labels are {int(failures > 0)}, and nothing can be told "
                "apart from one class; label some of both"
            )
        if not np.isfinite(self.p_fail).all():
            at = int(np.flatnonzero(~np.isfinite(self.p_fail))[0])
            raise LabError(f"p_fail in row {at} is {self.p_fail[at]}; leave that row out")

    @cached_property
    def roc(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """False alarm rate, hit rate and threshold; the curve's points."""
        need_sklearn()
        from sklearn.metrics import roc_curve

        rates: tuple[FloatArray, FloatArray, FloatArray] = roc_curve(self.failed, self.p_fail)
        return rates

    @cached_property
    def roc_area(self) -> float:
        """Area under the ROC curve: 0.5 guesses, 1 never errs."""
        need_sklearn()
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(self.failed, self.p_fail))

    @cached_property
    def precision_recall(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Precision, recall and threshold (one fewer); the curve's points."""
        need_sklearn()
        from sklearn.metrics import precision_recall_curve

        found: tuple[FloatArray, FloatArray, FloatArray] = precision_recall_curve(
            self.failed, self.p_fail
        )
        return found

    @cached_property
    def average_precision(self) -> float:
        """Area under the precision-recall curve; the share of failures guesses."""
        need_sklearn()
        from sklearn.metrics import average_precision_score

        return float(average_precision_score(self.failed, self.p_fail))

    @cached_property
    def brier(self) -> float:
        """Brier score: mean squared error of the probabilities, 0 is perfect."""
        return float(np.mean((self.p_fail - self.failed) ** 2))

    @cached_property
    def log_loss(self) -> float:
        """Mean negative log likelihood (nats); probabilities are kept 1e-15 away from 0 and 1."""
        p = np.clip(self.p_fail, 1e-15, 1 - 1e-15)
        return float(-np.mean(np.where(self.failed, np.log(p), np.log(1 - p))))

    def reliability(self, bins: int = 10) -> Reliability:
        """How often what is said to be likely happens, by bins of equal width."""
        if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= 1000:
            raise LabError(f"bins is {bins!r}; pass a whole number from 1 to 1000")
        edges = np.linspace(0.0, 1.0, bins + 1)
        place = np.minimum((self.p_fail * bins).astype(int), bins - 1)
        counts = np.bincount(place, minlength=bins)
        some = counts > 0
        said = np.bincount(place, self.p_fail, bins)[some] / counts[some]
        came = np.bincount(place, self.failed, bins)[some] / counts[some]
        return Reliability(said, came, counts[some], edges)

    def calibration_error(self, bins: int = 10) -> float:
        """Expected calibration error: the bins' gaps, weighted by their rows (Naeini et al. 2015,
        "Obtaining well calibrated probabilities using Bayesian binning")."""
        diagram = self.reliability(bins)
        gaps = np.abs(diagram.predicted - diagram.observed)
        return float(np.sum(diagram.counts * gaps) / len(self.failed))

    def cost_curve(self, missed_usd: float, false_alarm_usd: float) -> CostCurve:
        """Expected cost of every threshold that makes a difference.

        An alarm is a p_fail above the threshold, as the low band is p_fail <= `low_risk_max`.
        Thresholds stand halfway between neighbouring probabilities; 0 alarms wherever p_fail > 0.

        Raises LabError for a cost that is negative or not finite, or when both are 0.
        """
        for name, cost in (("missed_usd", missed_usd), ("false_alarm_usd", false_alarm_usd)):
            if not (math.isfinite(cost) and cost >= 0):
                raise LabError(f"{name} is {cost!r}; pass dollars from 0 on")
        if missed_usd == 0 and false_alarm_usd == 0:
            raise LabError("both costs are 0, so every threshold is as good; give one a price")
        levels, place = np.unique(self.p_fail, return_inverse=True)
        thresholds = np.append((levels[:-1] + levels[1:]) / 2, levels[-1])
        if levels[0] > 0:
            thresholds, place = np.insert(thresholds, 0, 0.0), place + 1
        size = len(thresholds)
        missed = np.cumsum(np.bincount(place[self.failed], minlength=size))
        spared = np.cumsum(np.bincount(place[~self.failed], minlength=size))
        false_alarms = int((~self.failed).sum()) - spared
        expected = (missed * missed_usd + false_alarms * false_alarm_usd) / len(self.failed)
        return CostCurve(thresholds, expected, missed, false_alarms, int(expected.argmin()))
