"""Trees of Python files as Python's own ast sees them, in the lines of python_parser_test.cpp.

usage: ast_tree.py [--library N] FILE...     N files of the standard library, too

A line for each node: kind [text|type], and where it stands, unless ast does not say that of such nodes.
"""

from __future__ import annotations

import argparse
import ast
import sys
import sysconfig
import warnings
from pathlib import Path

OPERATORS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "MatMult": "@",
    "LShift": "<<", "RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "Eq": "==", "NotEq": "!=",
    "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "In": "in", "NotIn": "not in", "Is": "is", "IsNot": "is not",
    "Not": "not", "USub": "-", "UAdd": "+", "Invert": "~",
}  # fmt: skip


class NotCompared(Exception):
    """A statement that mtmc's front end leaves opaque."""


class Tree:
    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.begins = [0]
        for line in self.text.splitlines(keepends=True):
            self.begins.append(self.begins[-1] + len(line))
        self.lines: list[str] = []

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.begins[node.lineno - 1] + node.col_offset, self.begins[node.end_lineno - 1] + node.end_col_offset

    def source(self, node: ast.AST) -> str:
        begin, end = self.span(node)
        return self.text[begin:end].decode()

    def put(self, depth: int, kind: str, text: str = "", type: str = "", at: ast.AST | None = None) -> None:
        place = "@{}-{}".format(*self.span(at)) if at is not None else "@"
        told = f"{kind} [{text}|{type}] {place}".replace("\r", "\\r").replace("\n", "\\n")
        self.lines.append(" " * depth + told)

    def all(self, nodes: list[ast.AST], depth: int) -> None:
        for node in nodes:
            self.node(node, depth)

    def block(self, nodes: list[ast.AST], depth: int) -> None:
        self.put(depth, "block")
        self.all(nodes, depth + 1)

    def parameters(self, given: ast.arguments, depth: int) -> None:
        def one(parameter: ast.arg, stars: str, default: ast.AST | None) -> None:
            annotation = self.source(parameter.annotation) if parameter.annotation else ""
            self.put(depth, "parameter", stars + parameter.arg, annotation)
            if default is not None:
                self.put(depth + 1, "initializer", "=")
                self.node(default, depth + 2)

        by_place = given.posonlyargs + given.args
        missing = len(by_place) - len(given.defaults)
        for i, parameter in enumerate(by_place):
            one(parameter, "", given.defaults[i - missing] if i >= missing else None)
            if given.posonlyargs and i == len(given.posonlyargs) - 1:
                self.put(depth, "parameter", "/")
        if given.vararg:
            one(given.vararg, "*", None)
        elif given.kwonlyargs:
            self.put(depth, "parameter", "*")
        for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            one(parameter, "", default)
        if given.kwarg:
            one(given.kwarg, "**", None)

    def node(self, node: ast.AST, depth: int) -> None:
        name = type(node).__name__
        method = getattr(self, "of_" + name, None)
        if method is None:
            raise NotCompared(name)
        method(node, depth)

    def parts(self, node: ast.AST, depth: int, kind: str, text: str, *children: ast.AST | None) -> None:
        """A node whose children are nodes of ast; those that are missing are left out."""
        self.put(depth, kind, text, at=node)
        self.all([child for child in children if child is not None], depth + 1)

    # Statements.

    def definition(self, node: ast.AST, depth: int) -> None:
        if node.decorator_list:
            self.put(depth, "decorated")
            self.all(node.decorator_list, depth + 1)
            depth += 1
        if isinstance(node, ast.ClassDef):
            self.put(depth, "class_definition", node.name, at=node)
        else:
            word = "def" if isinstance(node, ast.FunctionDef) else "async def"
            self.put(depth, "function", node.name, word, node)
            self.parameters(node.args, depth + 1)
        self.block(node.body, depth + 1)

    of_FunctionDef = of_AsyncFunctionDef = of_ClassDef = definition

    def of_Expr(self, node: ast.Expr, depth: int) -> None:
        self.parts(node, depth, "expression_statement", "", node.value)

    def of_Assign(self, node: ast.Assign, depth: int) -> None:
        self.put(depth, "expression_statement", at=node)
        for target in node.targets:
            depth += 1
            self.put(depth, "assignment", "=")
            self.node(target, depth + 1)
        self.node(node.value, depth + 1)

    def of_AnnAssign(self, node: ast.AnnAssign, depth: int) -> None:
        self.put(depth, "expression_statement", at=node)
        self.put(depth + 1, "assignment", "=", self.source(node.annotation))
        self.node(node.target, depth + 2)
        if node.value:
            self.node(node.value, depth + 2)
        else:
            self.put(depth + 2, "empty")

    def of_AugAssign(self, node: ast.AugAssign, depth: int) -> None:
        self.put(depth, "expression_statement", at=node)
        self.put(depth + 1, "assignment", OPERATORS[type(node.op).__name__] + "=")
        self.all([node.target, node.value], depth + 2)

    def of_For(self, node: ast.For | ast.AsyncFor, depth: int) -> None:
        word = "async" if isinstance(node, ast.AsyncFor) else ""
        self.parts(node, depth, "for_each_loop", word, node.target, node.iter)
        self.block(node.body, depth + 1)
        if node.orelse:
            self.block(node.orelse, depth + 1)

    of_AsyncFor = of_For

    def of_While(self, node: ast.While, depth: int) -> None:
        self.parts(node, depth, "while_loop", "", node.test)
        self.block(node.body, depth + 1)
        if node.orelse:
            self.block(node.orelse, depth + 1)

    def of_If(self, node: ast.If, depth: int) -> None:
        self.parts(node, depth, "if_statement", "", node.test)
        self.block(node.body, depth + 1)
        if not node.orelse:
            return
        other = node.orelse[0]
        if isinstance(other, ast.If) and self.text[self.span(other)[0] :].startswith(b"elif"):
            self.node(other, depth + 1)
        else:
            self.block(node.orelse, depth + 1)

    def of_With(self, node: ast.With | ast.AsyncWith, depth: int) -> None:
        self.put(depth, "with_statement", "async" if isinstance(node, ast.AsyncWith) else "", at=node)
        for item in node.items:
            if item.optional_vars is None:
                self.node(item.context_expr, depth + 1)
            else:
                self.put(depth + 1, "binary", "as")
                self.all([item.context_expr, item.optional_vars], depth + 2)
        self.block(node.body, depth + 1)

    of_AsyncWith = of_With

    def of_Try(self, node: ast.Try, depth: int) -> None:
        self.put(depth, "try_statement", at=node)
        self.block(node.body, depth + 1)
        for handler in node.handlers:
            word = "except" if isinstance(node, ast.Try) else "except*"
            self.put(depth + 1, "clause", word, handler.name or "", handler)
            if handler.type:
                self.node(handler.type, depth + 2)
            self.block(handler.body, depth + 2)
        for word, body in (("else", node.orelse), ("finally", node.finalbody)):
            if body:
                self.put(depth + 1, "clause", word)
                self.block(body, depth + 2)

    of_TryStar = of_Try

    def of_Return(self, node: ast.Return, depth: int) -> None:
        self.parts(node, depth, "return_statement", "", node.value)

    def of_Pass(self, node: ast.Pass, depth: int) -> None:
        self.put(depth, "empty", "pass", at=node)

    def of_Break(self, node: ast.Break, depth: int) -> None:
        self.put(depth, "break_statement", at=node)

    def of_Continue(self, node: ast.Continue, depth: int) -> None:
        self.put(depth, "continue_statement", at=node)

    def of_Import(self, node: ast.Import, depth: int) -> None:
        self.put(depth, "import_statement", self.source(node), at=node)

    of_ImportFrom = of_Import

    def of_Raise(self, node: ast.Raise, depth: int) -> None:
        self.parts(node, depth, "keyword_statement", "raise", node.exc, node.cause)

    def of_Assert(self, node: ast.Assert, depth: int) -> None:
        self.parts(node, depth, "keyword_statement", "assert", node.test, node.msg)

    def of_Global(self, node: ast.Global | ast.Nonlocal, depth: int) -> None:
        self.put(depth, "keyword_statement", type(node).__name__.lower(), at=node)
        for name in node.names:
            self.put(depth + 1, "name", name)

    of_Nonlocal = of_Global

    def of_Delete(self, node: ast.Delete, depth: int) -> None:
        self.put(depth, "keyword_statement", "del", at=node)
        if len(node.targets) > 1:
            depth += 1
            self.put(depth, "initializer_list")
        self.all(node.targets, depth + 1)

    # Expressions.

    def of_Name(self, node: ast.Name, depth: int) -> None:
        self.put(depth, "name", node.id, at=node)

    def of_Constant(self, node: ast.Constant | ast.JoinedStr, depth: int) -> None:
        self.put(depth, "literal", self.source(node), at=node)

    of_JoinedStr = of_Constant

    def of_BinOp(self, node: ast.BinOp, depth: int) -> None:
        self.parts(node, depth, "binary", OPERATORS[type(node.op).__name__], node.left, node.right)

    def of_BoolOp(self, node: ast.BoolOp, depth: int) -> None:
        word = "and" if isinstance(node.op, ast.And) else "or"
        last = len(node.values) - 1
        for i in range(last):
            self.put(depth + i, "binary", word, at=node if i == 0 else None)
        self.node(node.values[0], depth + last)
        for i, value in enumerate(node.values[1:]):
            self.node(value, depth + last - i)

    def of_Compare(self, node: ast.Compare, depth: int) -> None:
        words = ", ".join(OPERATORS[type(one).__name__] for one in node.ops)
        self.parts(node, depth, "binary" if len(node.ops) == 1 else "chain", words, node.left, *node.comparators)

    def of_UnaryOp(self, node: ast.UnaryOp, depth: int) -> None:
        self.parts(node, depth, "unary", OPERATORS[type(node.op).__name__], node.operand)

    def of_Starred(self, node: ast.Starred, depth: int) -> None:
        self.parts(node, depth, "unary", "*", node.value)

    def of_Await(self, node: ast.Await, depth: int) -> None:
        self.parts(node, depth, "unary", "await", node.value)

    def of_Yield(self, node: ast.Yield, depth: int) -> None:
        self.parts(node, depth, "unary", "yield", node.value)

    def of_YieldFrom(self, node: ast.YieldFrom, depth: int) -> None:
        self.parts(node, depth, "unary", "yield from", node.value)

    def of_NamedExpr(self, node: ast.NamedExpr, depth: int) -> None:
        self.parts(node, depth, "assignment", ":=", node.target, node.value)

    def of_IfExp(self, node: ast.IfExp, depth: int) -> None:
        self.parts(node, depth, "conditional", "", node.test, node.body, node.orelse)

    def of_Lambda(self, node: ast.Lambda, depth: int) -> None:
        self.put(depth, "lambda", at=node)
        self.parameters(node.args, depth + 1)
        self.node(node.body, depth + 1)

    def of_Call(self, node: ast.Call, depth: int) -> None:
        self.parts(node, depth, "call", "", node.func, *sorted(node.args + node.keywords, key=self.span))

    def of_keyword(self, node: ast.keyword, depth: int) -> None:
        self.parts(node, depth, "keyword_argument" if node.arg else "unary", node.arg or "**", node.value)

    def of_Attribute(self, node: ast.Attribute, depth: int) -> None:
        self.parts(node, depth, "member", "." + node.attr, node.value)

    def of_Subscript(self, node: ast.Subscript, depth: int) -> None:
        self.parts(node, depth, "subscript", "", node.value, node.slice)

    def of_Slice(self, node: ast.Slice, depth: int) -> None:
        self.put(depth, "slice", at=node)
        for part in (node.lower, node.upper, node.step):
            if part is None:
                self.put(depth + 1, "empty")
            else:
                self.node(part, depth + 1)

    def of_Tuple(self, node: ast.Tuple | ast.List | ast.Set, depth: int) -> None:
        bracket = {"Tuple": "", "List": "[", "Set": "{"}[type(node).__name__]
        self.put(depth, "initializer_list", "", bracket, node)
        self.all(node.elts, depth + 1)

    of_List = of_Set = of_Tuple

    def of_Dict(self, node: ast.Dict, depth: int) -> None:
        self.put(depth, "initializer_list", "", "{", node)
        for key, value in zip(node.keys, node.values, strict=True):
            self.put(depth + 1, "binary" if key else "unary", ":" if key else "**")
            self.all([value] if key is None else [key, value], depth + 2)

    def comprehension(self, node: ast.AST, depth: int) -> None:
        bracket = {"ListComp": "[", "GeneratorExp": "("}.get(type(node).__name__, "{")
        self.put(depth, "comprehension", "", bracket, node)
        if isinstance(node, ast.DictComp):
            self.put(depth + 1, "binary", ":")
            self.all([node.key, node.value], depth + 2)
        else:
            self.node(node.elt, depth + 1)
        for clause in node.generators:
            self.put(depth + 1, "clause", "async for" if clause.is_async else "for")
            self.all([clause.target, clause.iter], depth + 2)
            for condition in clause.ifs:
                self.put(depth + 1, "clause", "if")
                self.node(condition, depth + 2)

    of_ListComp = of_SetComp = of_DictComp = of_GeneratorExp = comprehension


def tree_of(path: Path) -> list[str] | None:
    """None where ast cannot read the file, or it has a statement that is not compared."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        tree = Tree(text)
        for statement in ast.parse(text).body:
            tree.node(statement, 1)
    except (NotCompared, SyntaxError, UnicodeDecodeError):
        return None
    return tree.lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=int, default=0)
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    files = list(given.files)
    # From 3.12 on, f-strings may hold what the front end does not read.
    if given.library and sys.version_info < (3, 12):
        library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        files += library[:: max(len(library) // given.library, 1)]
    for path in files:
        lines = tree_of(path)
        if lines is not None:
            print("\n".join([f"# {path}", *lines]))


if __name__ == "__main__":
    main()
