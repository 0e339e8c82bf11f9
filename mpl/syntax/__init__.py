"""Reading text: tokens, tables, builders, and what is said about text that is no program.

`mpl/parser.py` is what others call. `lexing.py` and `tokens.py` cut the text, `tables.py` runs the grammar over one
statement, `builders/` make syntax nodes; `errors.py`, `lexical_errors.py`, `mistakes.py` and `expected.py` find words
for what does not fit; `limits.py` keeps hostile text from costing more than it should.
"""
