"""Fitting the coefficients of p_fail to labelled observations.

p_fail is a logistic regression on the profile: its features are final slack, minimum, violation
ratio, volatility and drop, and its intercept is the bias. The fit is unpenalised maximum likelihood
unless a ridge is asked for. Scores come from cross-validation by session: rows of one session look
alike, so that a fold split by row would grade the fit on what it has seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from codesmith_lab.capacity.arrays import observe_all
from codesmith_lab.capacity.config import COEFFICIENTS, LIMITS, CapacityConfig
from codesmith_lab.capacity.observations import ObservationTable
from codesmith_lab.capacity.scores import Scores, need_sklearn
from codesmith_lab.errors import LabError

__all__ = ["LEAST_OF_EACH_CLASS", "Calibration", "calibrate"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

LEAST_OF_EACH_CLASS = 10
"""Fewer failures, or fewer successes, are refused: six numbers cannot be told from them."""
_Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A fit, and how good it is.

    base: the configuration whose profile the fit stands on. coefficients: by name, the bias
    included. standard_errors: by name; the greater of the model's own (Fisher information) and
    the one clustered by session (sandwich); infinite for a feature that never varies.
    before: scores of `base` as it is. after: scores of the fit on sessions it has not seen.
    folds: how many parts the sessions were split into. notes: what to know, in sentences.
    """

    base: CapacityConfig
    coefficients: dict[str, float]
    standard_errors: dict[str, float]
    before: Scores
    after: Scores
    folds: int
    notes: tuple[str, ...]

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % confidence interval of a coefficient."""
        middle, error = self.coefficients[name], self.standard_errors[name]
        return middle - _Z95 * error, middle + _Z95 * error

    def config(
        self, missed_usd: float | None = None, false_alarm_usd: float | None = None
    ) -> CapacityConfig:
        """The base with the fitted coefficients; with costs also with the cheapest threshold.

        missed_usd, false_alarm_usd: of a failure without an alarm and of an alarm without a
            failure. `low_risk_max` becomes the threshold of the least expected cost, and
            `medium_risk_max` is raised to it where it would lie below.

        Raises LabError when only one cost is given.
        """
        fitted = self.base.with_values(**self.coefficients)
        if missed_usd is None and false_alarm_usd is None:
            return fitted
        if missed_usd is None or false_alarm_usd is None:
            raise LabError("only one of missed_usd and false_alarm_usd is given; give both")
        best = self.after.cost_curve(missed_usd, false_alarm_usd).best_threshold
        return replace(fitted, low_risk_max=best, medium_risk_max=max(best, fitted.medium_risk_max))


def calibrate(
    table: ObservationTable,
    base: CapacityConfig | None = None,
    folds: int = 5,
    ridge: float = 0.0,
) -> Calibration:
    """Fit the coefficients of p_fail to a labelled table.

    table: with labels. base: weights, priors and window that make the profile; None is the
        reference. folds: parts of the sessions for cross-validation, at most as many as sessions.
    ridge: strength of an L2 penalty on the standardised features; 0 is none.

    Raises LabError without scikit-learn, without labels, for one class only, for fewer than
    `LEAST_OF_EACH_CLASS` rows of a class, for fewer than two sessions, for a row whose profile is
    not finite, and when the labels are separated perfectly (then no finite fit exists).
    """
    need_sklearn()
    base = base or CapacityConfig()
    failed = _labels(table)
    if not (np.isfinite(ridge) and ridge >= 0):
        raise LabError(f"ridge is {ridge!r}; pass a number from 0 on")
    parts = _folds(table, folds)
    snapshots = observe_all(base, table)
    features = np.column_stack(snapshots.profile.columns())
    if not np.isfinite(features).all():
        at = int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])
        raise LabError(f"the profile of row {at} is not finite; leave out its context_used_ratio")
    before = Scores("before", snapshots.p_fail, failed)
    weights = _fit(features, failed, ridge)
    after = Scores("after", _out_of_fold(table, features, failed, parts, ridge), failed)
    errors = _standard_errors(features, failed, weights, table.session_of)
    return Calibration(
        base,
        dict(zip(COEFFICIENTS, weights.tolist(), strict=True)),
        dict(zip(COEFFICIENTS, errors.tolist(), strict=True)),
        before,
        after,
        parts,
        _notes(table, features, errors, ridge, parts, folds),
    )


def _labels(table: ObservationTable) -> BoolArray:
    if table.failed is None:
        raise LabError("the observations have no labels; add a column named failed, 0 or 1")
    failures = int(table.failed.sum())
    rest = len(table) - failures
    if 0 in (failures, rest):
        raise LabError(
            f"all {len(table)} labels are {int(rest == 0)}, and a fit needs both; label "
            "observations of sessions that failed and of sessions that did not"
        )
    if min(failures, rest) < LEAST_OF_EACH_CLASS:
        raise LabError(
            f"there are {failures} failures and {rest} others in {len(table)} rows, and a fit "
            f"needs {LEAST_OF_EACH_CLASS} of each; label more observations"
        )
    return table.failed


def _folds(table: ObservationTable, folds: int) -> int:
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise LabError(f"folds is {folds!r}; pass a whole number from 2 on")
    sessions = len(table.sessions)
    if sessions < 2:
        raise LabError(
            "there is one session only, and a fit is tried on sessions it has not seen; "
            "add another session"
        )
    return min(folds, sessions)


def _fit(features: FloatArray, failed: BoolArray, ridge: float) -> FloatArray:
    """Coefficients and bias, (6,)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    middle, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 1e-12, spread, np.inf)  # what never varies gets no weight
    model = LogisticRegression(C=np.inf if ridge == 0 else 1 / ridge, tol=1e-9, max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            model.fit((features - middle) / spread, failed)
        except ConvergenceWarning:
            raise LabError(_SEPARATED) from None
    slopes = model.coef_[0] / spread
    weights = np.append(slopes, model.intercept_[0] - slopes @ middle)
    low, high = LIMITS["bias"]
    if not ((weights >= low) & (weights <= high)).all() or _separates(features, failed, weights):
        raise LabError(_SEPARATED)
    return weights


_SEPARATED = (
    "the labels are separated perfectly, so that no finite coefficients fit them best; "
    "add observations, or pass a ridge above 0"
)


def _separates(features: FloatArray, failed: BoolArray, weights: FloatArray) -> bool:
    z = features @ weights[:-1] + weights[-1]
    return bool(z[failed].min() > 30 and z[~failed].max() < -30)


def _probability(features: FloatArray, weights: FloatArray) -> FloatArray:
    z = features @ weights[:-1] + weights[-1]
    grown = np.exp(-np.abs(z))
    p: FloatArray = np.where(z >= 0, 1.0, grown) / (1.0 + grown)
    return p


def _out_of_fold(
    table: ObservationTable, features: FloatArray, failed: BoolArray, parts: int, ridge: float
) -> FloatArray:
    """Each row's probability from a fit that has seen none of its session."""
    from sklearn.model_selection import GroupKFold

    p_fail = np.empty(len(table))
    for seen, unseen in GroupKFold(parts).split(features, failed, table.session_of):
        if failed[seen].all() or not failed[seen].any():
            raise LabError(
                "all failures (or all others) lie in one part of the sessions, so that a fit "
                "without it sees one class only; label both in more sessions, or take more folds"
            )
        p_fail[unseen] = _probability(features[unseen], _fit(features[seen], failed[seen], ridge))
    return p_fail


def _standard_errors(
    features: FloatArray, failed: BoolArray, weights: FloatArray, sessions: npt.NDArray[Any]
) -> FloatArray:
    """The greater of the model's own standard errors and those clustered by session.

    Fisher information: inverse of X' W X, W = p (1 - p). Clustered: the same on both sides of
    the sum over sessions of the outer products of their scores (Liang and Zeger 1986), times
    S / (S - 1).
    """
    x = np.column_stack([features, np.ones(len(features))])
    p = _probability(features, weights)
    varies = np.append(features.std(axis=0) > 1e-12, True)
    errors = np.full(len(weights), np.inf)
    inside = x[:, varies]
    bread = np.linalg.pinv(inside.T @ (inside * (p * (1 - p))[:, None]))
    count = int(sessions.max()) + 1
    scores = np.zeros((count, inside.shape[1]))
    np.add.at(scores, sessions, inside * (failed - p)[:, None])
    clustered = bread @ (scores.T @ scores) @ bread * count / (count - 1)
    errors[varies] = np.sqrt(np.maximum(np.diag(bread), np.diag(clustered)))
    return errors


def _notes(
    table: ObservationTable,
    features: FloatArray,
    errors: FloatArray,
    ridge: float,
    parts: int,
    asked: int,
) -> tuple[str, ...]:
    notes = [
        f"Cross-validated on {parts} parts of {len(table.sessions)} sessions, "
        f"{len(table):,} observations."
    ]
    if parts < asked:
        notes.append(f"There are fewer sessions than the {asked} parts asked for.")
    fixed = [name for name, error in zip(COEFFICIENTS, errors, strict=True) if np.isinf(error)]
    if fixed:
        notes.append(f"{', '.join(fixed)}: 0, since the feature never varies.")
    if ridge > 0:
        notes.append("With a ridge the intervals are too narrow.")
    related = np.atleast_2d(np.corrcoef(features[:, features.std(axis=0) > 1e-12], rowvar=False))
    if np.any(np.abs(np.triu(related, 1)) > 0.98):
        notes.append("Some features rise and fall together: their coefficients trade off.")
    return tuple(notes)
