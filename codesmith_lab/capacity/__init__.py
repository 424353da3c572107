"""The capacity controller: when does a task outgrow a model's head, and what is done about it."""

from codesmith_lab.capacity.arrays import SnapshotArrays, observe_all
from codesmith_lab.capacity.calibration import Calibration, calibrate
from codesmith_lab.capacity.config import CapacityConfig
from codesmith_lab.capacity.config_toml import config_from_toml, config_to_toml
from codesmith_lab.capacity.controller import (
    CapacityController,
    CapacityDecision,
    CapacitySnapshot,
    ControllerState,
)
from codesmith_lab.capacity.escalation import Escalation, escalate_errors
from codesmith_lab.capacity.formulas import CapacityObservation, SlackProfile
from codesmith_lab.capacity.labelled import labelled_frame, read_labelled
from codesmith_lab.capacity.observations import ObservationTable, join_tables
from codesmith_lab.capacity.scores import Scores
from codesmith_lab.capacity.search import SearchResult, search_thresholds
from codesmith_lab.capacity.shapes import SHAPES, draw_labels, drawn, synthetic
from codesmith_lab.capacity.simulation import Step, simulate
from codesmith_lab.capacity.sweep import sweep
from codesmith_lab.capacity.sweep_result import SweepCancelled, SweepCosts, SweepResult

__all__ = [
    "Calibration",
    "CapacityConfig",
    "CapacityController",
    "CapacityDecision",
    "CapacityObservation",
    "CapacitySnapshot",
    "ControllerState",
    "Escalation",
    "ObservationTable",
    "SHAPES",
    "Scores",
    "SearchResult",
    "SlackProfile",
    "SnapshotArrays",
    "Step",
    "SweepCancelled",
    "SweepCosts",
    "SweepResult",
    "calibrate",
    "config_from_toml",
    "config_to_toml",
    "draw_labels",
    "drawn",
    "escalate_errors",
    "join_tables",
    "labelled_frame",
    "observe_all",
    "read_labelled",
    "search_thresholds",
    "simulate",
    "sweep",
    "synthetic",
]
