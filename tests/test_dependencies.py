"""What is imported is declared, and what was tested is what may be installed."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = {name.split(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]} | {"cli"}
BOUNDED = ("torch", "lightning", "jsonargparse")


def plain(name: str) -> str:
    """A distribution's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: list[str]) -> set[str]:
    return {plain(re.match(r"[\w.-]+", text)[0]) for text in requirements}  # pyright: ignore[reportOptionalSubscript]


NEEDED = named(PROJECT["project"]["dependencies"])
EXTRAS = PROJECT["project"]["optional-dependencies"]
OPTIONAL = {name for extra, texts in EXTRAS.items() if extra != "dev" for name in named(texts)}
DISTRIBUTIONS = {
    module: {plain(name) for name in names} for module, names in packages_distributions().items()
}


def imports(tree: ast.AST, late: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Line and module of every import below a node, and whether it waits until a function is
    called, as that of an extra must.
    """
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Import(names=aliases):
                yield from ((node.lineno, alias.name, late) for alias in aliases)
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module, late
            case ast.Call(
                func=ast.Name(id="import_module"), args=[ast.Constant(value=str(module))]
            ):
                yield node.lineno, module, late
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imports(node, late or function)


def undeclared(folder: str, allowed: set[str], allowed_late: set[str]) -> list[str]:
    """The imports of other people's modules whose distribution is not among those allowed."""
    path = ROOT / folder
    found = []
    for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
        for line, module, late in imports(ast.parse(file.read_text())):
            top = module.split(".")[0]
            own = top in OURS or top in sys.stdlib_module_names or (file.parent / top).exists()
            if own or (file.parent / f"{top}.py").exists() or top in ("tests", "benchmarks"):
                continue
            names = DISTRIBUTIONS.get(top, {plain(top)})
            if not names & (allowed_late if late else allowed):
                found.append(f"{file.relative_to(ROOT)}:{line} {module} ({', '.join(names)})")
    return found


@pytest.mark.parametrize("folder", [*sorted(OURS - {"cli"}), "cli.py"])
def test_what_the_packages_import_is_declared(folder: str):
    """At the top of a file a dependency, inside a function at least that of an extra."""
    missing = undeclared(folder, NEEDED, NEEDED | OPTIONAL)
    assert not missing, "declare in pyproject.toml:\n" + "\n".join(missing)


@pytest.mark.parametrize("folder", ["benchmarks", "tests"])
def test_what_tests_and_benchmarks_import_is_declared_for_developers(folder: str):
    allowed = NEEDED | named(EXTRAS["dev"])
    missing = undeclared(folder, allowed, allowed)
    assert not missing, "declare in pyproject.toml, in the extra dev:\n" + "\n".join(missing)


def test_developers_have_every_extra():
    lacking = {e: named(texts) - NEEDED - named(EXTRAS["dev"]) for e, texts in EXTRAS.items()}
    lacking.pop("docs", None)  # built apart
    assert not any(lacking.values()), lacking


def test_an_import_is_found_wherever_it_stands():
    text = "import a.b\nif x:\n  from c.d import e\ndef f():\n  import_module('g.h')\n  import i\n"
    assert list(imports(ast.parse(text))) == [
        (1, "a.b", False),
        (3, "c.d", False),
        (5, "g.h", True),
        (6, "i", True),
    ]


@pytest.mark.parametrize("name", BOUNDED)
def test_libraries_whose_private_names_are_used_end_where_tests_ended(name: str):
    """The next minor release after the tested one is the first that may change a private name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    (tested,) = (line.split("==")[1] for line in lines if line.startswith(f"{name}=="))
    (bound,) = (
        text.split("<")[1]
        for text in PROJECT["project"]["dependencies"]
        if re.match(rf"{name}\b(?!-)", text) and "<" in text
    )
    major, minor = map(int, tested.split(".")[:2])
    assert bound == f"{major}.{minor + 1}", f"{name} was tested up to {tested}"
