"""Rounds: the same client and server code whatever carries their messages."""
