"""The text form of the algebra: each view as the pipeline that the checker understood, names and keys resolved."""

from __future__ import annotations

from compiler.graph.notation import names_of, operator_text, printable
from compiler.graph.transform import Scan, source_of
from mpl.typed import MergeNode, RelationTree, TypedProgram, inputs_of


def show_algebra(program: TypedProgram) -> str:
    lines: list[str] = []
    for name, view in program.views.items():
        key = names_of(view.schema.key, view.schema.columns) or "(one row)"
        storage = f" {view.storage}" if view.storage else ""
        lines += [f"view {printable(name)} key {key}{storage}", *_pipeline(view.relation, "  "), ""]
    return "\n".join(lines).strip("\n") + "\n"


def _pipeline(root: RelationTree, indent: str) -> list[str]:
    """The source, then one operator per line; other inputs stand below their operator, further in.

    Follows the pipeline in a loop; as deep as sub-relations are nested, which has a limit.
    """
    operators: list[RelationTree] = []
    node = root
    while inputs_of(node) and not isinstance(node, MergeNode):
        operators.append(node)
        node = inputs_of(node)[0]
    lines: list[str] = []
    if isinstance(node, Scan):
        lines.append(f"{indent}{printable(source_of(node))}")
    else:
        lines.append(f"{indent}merge")
        for part in inputs_of(node):
            lines += _pipeline(part, indent + "     ")
    for operator in reversed(operators):
        lines.append(f"{indent}|> {operator_text(operator)}")
        for part in inputs_of(operator)[1:]:
            lines += _pipeline(part, indent + "     ")
    return lines
