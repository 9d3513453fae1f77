"""What reading the rows of a plan costs, in this process."""
