"""Other ways to send a session, each proved by a replay."""
