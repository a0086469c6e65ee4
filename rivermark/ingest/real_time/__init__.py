"""Messages read one by one by Spark's real-time mode, which runs no Python.

Here alone what the parser says of a text is said a second time, as Spark's expressions.
"""
