"""Bulk programs: for every view a Spark DataFrame program, made from the same algebra as the streaming code.

`expressions.py` writes scalar expressions, `functions.py` the functions of the library, `relations.py` the operators,
`program.py` puts a view together. Only text is made here: nothing in the compiler imports Spark.
"""
