"""Read the rows of surviving blocks in this process."""
