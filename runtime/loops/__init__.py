"""The loops of operators, printed from the templates in `codegen_templates/` and loaded.

An operator's specification says which template and what goes into it (`code.py`); expressions come with their text
(`scalar.py`), so that they stand in the loop instead of being called for each row. Everything that is loaded was walked
against a list of what templates can make (`safety.py`). Whoever builds an operator gets the same loop: the compiler,
the simulator, a test.
"""
