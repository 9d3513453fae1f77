"""TPC-H's tables and predicates."""
