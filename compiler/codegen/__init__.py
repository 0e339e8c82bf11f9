"""From typed expressions to Python source that computes the same values, and from source to functions.

`scalars.py` writes the body of a function, `module.py` gathers functions into one module text per component through
`codegen_templates/`, `safety.py` walks the syntax tree before anything is compiled. Nothing that a user wrote gets
into the text: columns are c0, c1, ..., literals are entries of the constants table `K`.
"""
