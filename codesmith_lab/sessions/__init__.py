"""Logs in; analysis, findings, remedies and reports out."""
