"""Build and maintain an index: the public functions that write, one module each."""
