"""Bundled sessions, made by generators: same bytes on every machine, nobody's data."""

from codesmith_lab.samples.agent_log import agent_log_lines
from codesmith_lab.samples.clock_story import clock_story, clock_story_lines, write_clock_story
from codesmith_lab.samples.section_sessions import section_session, section_session_lines

__all__ = [
    "agent_log_lines",
    "clock_story",
    "clock_story_lines",
    "section_session",
    "section_session_lines",
    "write_clock_story",
]
