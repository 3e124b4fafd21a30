"""The README and the pages of the docs say what is so.

Their links lead somewhere, their code prints what they show, and what they name exists.
"""

import glob
import re
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT, Block, blocks, commands

README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PACKAGES = "core|metrics|datamodules|corpora|lightning_modules|callbacks|experiment|studies"
FOLDERS = f"{PACKAGES}|benchmarks|configs|tests"
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def test_the_readme_is_short():
    text = README.read_text()
    assert len(text.splitlines()) <= 120
    assert len(text.split()) <= 700


def test_the_readme_has_a_python_example_of_ten_lines():
    (example,) = (block for block in blocks(README.read_text()) if block.language == "python")
    assert len(example.text.splitlines()) == 10


def shown() -> list:
    """Every example that is followed by what it prints."""
    found = []
    for page in PAGES:
        of_page = blocks(page.read_text())
        pairs = [
            (code, said)
            for code, said in pairwise(of_page)
            if (code.language, said.language) == ("python", "text")
        ]
        found += [
            pytest.param(*pair, id=f"{page.stem}-{number}") for number, pair in enumerate(pairs)
        ]
    return found


@pytest.mark.parametrize(("code", "said"), shown())
def test_an_example_prints_what_the_page_shows(code: Block, said: Block):
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(code.text, "example", "exec"), {})
    assert printed.getvalue() == said.text


def test_there_are_such_examples():
    assert len(shown()) >= 4


@each_page
def test_links_lead_to_files_and_headings(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(), flags=re.MULTILINE)
            assert anchor in {
                re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
                for heading in headings
            }, target


@each_page
def test_files_that_are_named_are_there(page: Path):
    for path in re.findall(rf"(?<![\w/])(?:{FOLDERS})/[\w./*-]*[\w*/]", page.read_text()):
        assert glob.glob(str(ROOT / path)), path


@each_page
def test_python_names_that_are_named_can_be_imported(page: Path):
    for name in re.findall(rf"`((?:{PACKAGES})(?:\.\w+)+)`", page.read_text()):
        if (ROOT / name.replace(".", "/")).is_dir() or name.endswith(".py"):
            continue
        module, _, last = name.rpartition(".")
        assert hasattr(import_module(module), last) or import_module(name), name


@each_page
def test_make_has_the_targets_that_are_named(page: Path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert (
        set(re.findall(r"(?:`|^)make (?!PYTHON)([\w-]+)", page.read_text(), flags=re.MULTILINE))
        <= targets
    )


@each_page
def test_commands_are_commands(page: Path):
    known = {"fit", "validate", "test", "predict", "describe", "score", "study", "corpus"}
    assert {words[0] for words in commands(page.read_text())} <= known


@each_page
def test_prose_has_lines_of_100(page: Path):
    """Tables, code and pictures cannot be broken."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [
        line
        for line in prose.splitlines()
        if len(line) > 100 and not line.startswith(("|", "![", "<!--", "    "))
    ] == []


def test_the_docs_say_of_every_report_what_its_claims_say():
    """The counts of outcomes in the README and in docs/results.md are those of the reports."""
    readme, results = README.read_text(), (ROOT / "docs" / "results.md").read_text()
    for report in sorted((ROOT / "docs" / "results").glob("*/README.md")):
        name = report.parent.name
        counts = re.search(
            r"Of (\d+) claims: (\d+) supported, (\d+) not supported, (\d+) undecided[^,]*, "
            r"(\d+) not tested(?:, ([^.]*))?\.",
            report.read_text(),
        )
        assert counts
        (row,) = (line for line in results.splitlines() if line.startswith(f"| [{name}]"))
        assert [cell.strip() for cell in row.strip("|").split("|")][2:] == [
            words or "" for words in counts.groups()
        ]
        (line,) = (
            " ".join(entry.split())
            for entry in re.split(r"\n(?=- |\n)", readme)
            if f"results/{name}/" in entry
        )
        _, supported, refuted, undecided, untested, _ = counts.groups()
        wanted = [f"{supported} supported", f"{undecided} undecided"]
        wanted += [f"{refuted} not,"] * (refuted != "0") + [f"{untested} not tested"] * (
            untested != "0"
        )
        assert all(words in line for words in wanted), line
        assert ("SIMULATED" in report.read_text()) == ("simulated" in line)
        assert ("REDUCED" in report.read_text()) == ("reduced" in line)


def test_the_citation_and_the_package_agree():
    project = (ROOT / "pyproject.toml").read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project
    assert f'name = "{citation["authors"][0]["name"]}"' in project
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_every_package_says_that_it_is_typed():
    assert all((ROOT / package / "py.typed").is_file() for package in PACKAGES.split("|"))
