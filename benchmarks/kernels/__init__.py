"""What one kernel costs: over zone maps in memory, hashes, literals, footers."""
