"""What docs/adding.md shows works as it stands: its files, its tests and its commands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.docs.pages import ROOT, blocks, commands, sections

PAGE = (ROOT / "docs" / "adding.md").read_text()
EXAMPLES = {heading: text for heading, text in sections(PAGE).items() if blocks(text)}
FOUND = {
    "A delivery": ("soft_nll",),
    "A dataset": ("soft_nll",),
    "A probe": ("confidence", "confidence_divided"),
    "A metric": ("unchosen", "unchosen_nohlv", "unchosen_hlv"),
    "A figure kind": ("soft_nll",),
}


@pytest.mark.parametrize("heading", EXAMPLES)
def test_a_worked_example_works(heading: str, tmp_path: Path):
    text = EXAMPLES[heading]
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    script = [f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nfrom cli import main\n"]
    for block in blocks(text):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
        elif block.language == "python":
            script.append(block.text)
    script += [f"main({words})\n" for words in commands(text)]
    (tmp_path / "example.py").write_text("".join(script))
    processes.run([], check=True, script=str(tmp_path / "example.py"), cwd=tmp_path)
    found = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/results.json")]
    assert len(found) == (6 if heading == "A figure kind" else 1)
    for results in found:
        assert all(isinstance(results["metrics"][name], float) for name in FOUND[heading])
    if heading == "A figure kind":
        report = tmp_path / "runs" / "box-report"
        assert "Boxes: median and quartiles of 3 seeds." in (report / "report.html").read_text()
        assert (report / "figures" / "seeds.svg").is_file()
        assert (report / "tables" / "seeds-quartiles.csv").read_text().count("\n") == 3
    if heading == "A dataset":
        assert found[0]["metrics"]["soft_nll"] == pytest.approx(
            0.746, abs=0.01
        )  # as its config's head says


@pytest.mark.parametrize("heading", EXAMPLES)
def test_a_worked_example_is_written_as_the_project_is(heading: str, tmp_path: Path):
    for number, block in enumerate(blocks(EXAMPLES[heading])):
        if block.language == "python":
            # a few lines without a title are no module, and need no head
            head = "" if block.title else '"""Lines to be typed."""\n\n'
            (tmp_path / (block.title or f"block_{number}.py")).write_text(head + block.text)
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", str(tmp_path)]
    for words in (["format", "--check"], ["check", "--ignore", "I001"]):  # of imports it knows none
        command = [sys.executable, "-m", "ruff", *words, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_there_are_five_drills():
    assert [heading.split()[-1] for heading in sections(PAGE)] == [
        "delivery",
        "dataset",
        "probe",
        "metric",
        "kind",
    ]
    assert FOUND.keys() == EXAMPLES.keys()
