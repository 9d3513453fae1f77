"""Building and keeping an index: the public functions that write, a module each."""
