"""The worked example of docs/scoring.md does what the page says."""

from pathlib import Path

import pytest

from cli import main
from tests.docs.pages import ROOT, blocks, commands, sections

EXAMPLE = sections((ROOT / "docs/scoring.md").read_text())["A worked example"]


def test_the_example_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    code, _, shown = blocks(EXAMPLE)
    monkeypatch.chdir(tmp_path)
    exec(compile(code.text, code.title, "exec"), {})
    (words,) = commands(EXAMPLE)
    main(words)
    printed = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    lines = [" ".join(line.split()) for line in shown.text.splitlines() if line.strip("… \n")]
    assert len(lines) >= 5
    assert set(lines) <= printed
    assert (tmp_path / "report.html").is_file()
