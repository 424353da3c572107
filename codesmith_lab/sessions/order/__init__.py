"""The order of the sections of a session: measured, weighed, replayed, exported."""
