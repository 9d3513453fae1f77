"""Pruning rates: of every scan the blocks, rows and bytes of all, those kept, and the ideal, by technique and peer."""
