"""The capacity controller on a session: observed, replayed, billed."""
