"""What a whole call of ``prune()`` costs, on synthetic indexes in the real format."""
