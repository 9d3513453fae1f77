"""A module for each peer: ``open_engine(data, work)`` makes what the peer needs, and returns an Engine."""
