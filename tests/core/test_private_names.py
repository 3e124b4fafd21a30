"""Private names of other libraries are used in core/compat.py alone."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from core.compat import OVERRIDDEN

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("core", "metrics", "datamodules", "corpora", "lightning_modules", "callbacks"),
    *("experiment", "studies", "benchmarks"),
)
ALLOWED = Path("core/compat.py")
# documented by Python, in spite of how they are written
DOCUMENTED = {"_exit", "_asdict", "_replace", "_fields", "_make"}
FILES = [Path("cli.py"), *(p.relative_to(ROOT) for n in PACKAGES for p in (ROOT / n).rglob("*.py"))]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in DOCUMENTED


def stored_on(names: set[str], tree: ast.AST) -> set[str]:
    """The attributes that are set on variables of these names."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    }


def defined_in(tree: ast.AST) -> set[str]:
    """The names that a file gives to functions, classes, fields and attributes of its objects."""
    own = stored_on({"self", "cls"}, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    return own


def foreign_private_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of all private names in a file that are not of its own making."""
    tree = ast.parse(text)
    own = defined_in(tree) | {entry.name for entry in OVERRIDDEN}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=aliases):
                names = [*(module or "").split("."), *(alias.name for alias in aliases)]
            case ast.Import(names=aliases):
                names = [part for alias in aliases for part in alias.name.split(".")]
            case ast.Attribute(attr=name) if name not in own:
                names = [name]
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
                args=[_, ast.Constant(value=str(name)), *_],
            ) if name not in own:
                names = [name]
            case _:
                continue
        yield from ((node.lineno, name) for name in names if is_private(name))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import torch._C.thing", ["_C"]),
        ("from torch._C import thing", ["_C"]),
        ("from torch.nn.modules.batchnorm import _BatchNorm", ["_BatchNorm"]),
        ("torch._fused_sgd_(weights)", ["_fused_sgd_"]),
        ("trainer.strategy._launcher = own", ["_launcher"]),
        ("getattr(action, '_typehint', None)", ["_typehint"]),
        ("class A(Timer):\n  def f(self): return self._duration", ["_duration"]),
        ("class A(Timer):\n  def f(self): super()._check()", ["_check"]),
        ("class A:\n  def f(self): self._own = 1\n  def g(self): return self._own", []),
        ("class A:\n  def _f(self): pass\n  def g(self, other): return other._f()", []),
        ("result._replace(a=1); os._exit(0); self.__class__", []),
        ("super()._run_subcommand(subcommand)", []),
    ],
)
def test_private_names_are_found(text: str, found: list[str]):
    assert [name for _, name in foreign_private_names(text)] == found


def test_private_names_of_other_libraries_are_in_compat_alone():
    assert len(FILES) > 200
    found = [
        f"{path}:{line} uses {name}"
        for path in FILES
        if path != ALLOWED
        for line, name in foreign_private_names((ROOT / path).read_text())
    ]
    assert not found, "give it a name in core/compat.py, with a test:\n" + "\n".join(found)


def our_classes() -> set[type]:
    """Every class of the packages."""
    modules = [
        import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        for path in FILES
        if path.parts[0] != "benchmarks"
    ]
    members = (value for module in modules for value in vars(module).values())
    return {value for value in members if inspect.isclass(value) and is_ours(value)}


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in PACKAGES


def written_in(kind: type) -> set[str]:
    """The private names that a class's own lines define: methods and attributes of its objects."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):  # written in C, or made by a call
        return {name for name in vars(kind) if is_private(name)}
    assert isinstance(tree.body[0], ast.ClassDef)
    methods = {node.name for node in tree.body[0].body if isinstance(node, ast.FunctionDef)}
    return {name for name in methods | stored_on({"self"}, tree) if is_private(name)}


def test_no_class_takes_a_private_name_of_its_foreign_bases_but_those_in_compat():
    """Neither on purpose nor by accident: an attribute of the same name would silently replace the
    library's own.
    """
    allowed = {(entry.owner, entry.name) for entry in OVERRIDDEN}
    bases = {
        (kind, base)
        for kind in our_classes()
        for base in kind.__mro__[1:]
        if not is_ours(base) and base.__module__ != "builtins"
    }
    written = {kind: written_in(kind) for pair in bases for kind in pair}
    taken = {
        (base.__name__, name): kind.__qualname__
        for kind, base in bases
        for name in written[kind] & written[base]
    }
    assert taken.keys() == allowed, {pair: taken.get(pair) for pair in taken.keys() ^ allowed}
