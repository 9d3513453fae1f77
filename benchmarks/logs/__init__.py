"""Log lines, and searches in them."""
