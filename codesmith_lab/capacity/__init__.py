"""The capacity controller: when does a task outgrow a model's head, and what is done about it."""

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

__all__ = [
    "CapacityConfig",
    "CapacityController",
    "CapacityDecision",
    "CapacityObservation",
    "CapacitySnapshot",
    "ControllerState",
    "Escalation",
    "SlackProfile",
    "config_from_toml",
    "config_to_toml",
    "escalate_errors",
]
