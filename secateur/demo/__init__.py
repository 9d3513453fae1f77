"""The demo: on a lake (`lake`), and on TPC-H's lineitem in two orders on the local disk (`run`).

Every answer is compared with that of plain Spark.
"""
