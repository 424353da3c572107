"""Logs of every format, read into requests with their raw bytes."""
