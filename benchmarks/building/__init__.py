"""What building an index and keeping it up costs."""
