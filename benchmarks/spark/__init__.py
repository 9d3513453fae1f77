"""What queries of Spark cost, with the index and without."""
