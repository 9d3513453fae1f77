"""What planning a Delta or an Iceberg table costs, beside their own planners."""
