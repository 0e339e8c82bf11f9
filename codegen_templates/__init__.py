"""The jinja2 templates from which the compiler prints operator modules.

A package only so that the templates are installed with the project: it holds `*.j2` files and no
logic. Decisions are taken in `compiler`; what does not vary between instances is in `runtime`.
"""
