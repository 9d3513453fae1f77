"""Decoders under random bytes: targets, seeds, and what runs them with atheris."""
