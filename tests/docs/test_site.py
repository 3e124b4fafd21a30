"""The docs site builds strictly, and needs nothing from elsewhere to be built or to be read."""

import doctest
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT

PACKAGES = (
    "core",
    "metrics",
    "datamodules",
    "corpora",
    "lightning_modules",
    "callbacks",
    "experiment",
    "studies",
)


@pytest.fixture(scope="module", autouse=True)
def needed() -> None:
    """The extra `docs`; `dev` has it, too."""
    for module in ("mkdocs", "material", "mkdocstrings"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed; pip install -e '.[docs]' -c constraints.txt")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built where no proxy leads out."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = dict.fromkeys(
        ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"
    )
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    environment = {**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_every_page_of_the_navigation_is_built(site: Path):
    def pages(entry) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [
            page
            for part in (entry.values() if isinstance(entry, dict) else entry)
            for page in pages(part)
        ]

    navigation = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)["nav"]
    for page in pages(navigation):
        built = page.removesuffix(".md").replace("README", "index") + ".html"
        assert (site / built).is_file(), page
    in_navigation = {Path(page).name for page in pages(navigation)}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= in_navigation


def test_nothing_is_fetched_from_elsewhere(site: Path):
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert (
            re.findall(
                r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"?(?:https?:)?//[^\">]*", text
            )
            == []
        ), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", sheet.read_text()), sheet


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_shows_every_room(site: Path, package: str):
    """Classes with their options, and examples as code and not as quotations."""
    text = (site / "api" / f"{package}.html").read_text()
    assert len(re.findall(r'<h[2-6] id="', text)) >= 10
    assert "<blockquote>" not in text
    assert "&gt;&gt;&gt;" in text


def test_what_a_dataset_needs_is_in_the_reference(site: Path):
    text = (site / "api" / "datamodules.html").read_text()
    for name in ("VoteDataModule", "VoteTable", "Delivery", "OwnVotes", "Corpus"):
        assert re.search(rf'<h[2-6] id="datamodules[\w.]*\.{name}"', text), name
    assert "Train on this many votes per item" in text


@pytest.mark.parametrize("module", ["front_pages", "readable_reference"])
def test_examples_of_what_builds_the_site(module: str):
    done = doctest.testmod(import_module(f"docs.site_build.{module}"))
    assert done.attempted
    assert not done.failed
