"""Names that would make files of more than 255 bytes are refused before anything is computed."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import main

ROOT = Path(__file__).parents[2]
LONG = "n" * 190
FIT = ["fit", "--config", str(ROOT / "configs/digits.yaml")]
TABLE = {"rows": "seed_everything", "columns": ["kl"]}


@pytest.fixture(scope="module", autouse=True)
def _long_class(tmp_path_factory: pytest.TempPathFactory):
    """A dataset whose class has a name that no folder can have."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "long_names.py").write_text(
        f"from datamodules import Digits\n\n\nclass {'D' * 300}(Digits):\n    pass\n"
    )
    sys.path.append(str(folder))
    yield
    sys.path.remove(str(folder))


def told(arguments: list[str], capsys: pytest.CaptureFixture) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"name": LONG}, "study.yaml: name is nnn"),
        (
            {"report": {"tables": [TABLE, {**TABLE, "name": LONG}]}},
            "study.yaml: report.tables[1].name is nnn",
        ),
        ({"report": {"figures": [{"name": LONG}]}}, "study.yaml: report.figures[0].name is nnn"),
        ({"selections": {LONG: {}}}, "study.yaml: the name of a selection is nnn"),
        (
            {"options": {"data": f"long_names.{'D' * 300}"}},
            "the name that a run has by its data and data.delivery is ddd",
        ),
        (
            {
                "options": {
                    "trainer.callbacks": [
                        {"class_path": "OODScores", "init_args": {"sets": {LONG: "noise.npy"}}}
                    ]
                }
            },
            "study.yaml: OODScores's sets hold the name nnn",
        ),
    ],
    ids=["study", "table", "figure", "selection", "run", "probe"],
)
def test_a_name_too_long_for_a_file_is_refused_in_plan_and_before_a_run(
    command: str,
    content: dict[str, Any],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
):
    base = {
        "name": "small",
        "configs": [str(ROOT / "configs/digits.yaml")],
        "grids": {"all": {"seed_everything": [0, 1]}},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({**base, **content}))
    text = told(
        ["study", command, str(tmp_path / "study.yaml"), "--runs", str(tmp_path / "runs")], capsys
    )
    assert message in text
    assert " bytes; it names files, so it must be at most 1" in text
    assert len(text.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_single_run_and_its_folder_too(tmp_path: Path, capsys: pytest.CaptureFixture):
    message = told(
        [
            *FIT,
            "--data",
            f"long_names.{'D' * 300}",
            "--trainer.default_root_dir",
            str(tmp_path / "runs"),
        ],
        capsys,
    )
    assert "the name that a run has by its data and data.delivery is ddd" in message
    assert not (tmp_path / "runs").exists()
    message = told([*FIT, "--trainer.default_root_dir", str(tmp_path / ("x" * 256))], capsys)
    assert "trainer.default_root_dir is " in message
    assert "with a name of 256 bytes in it; a folder's name may have 255." in message
    deep = tmp_path.joinpath(*["y" * 200] * 20)
    message = told([*FIT, "--trainer.default_root_dir", str(deep)], capsys)
    assert f"a path of {len(str(deep))} bytes; files below it would be beyond 4096" in message


def test_names_at_the_limit_are_fine(tmp_path: Path, capsys: pytest.CaptureFixture):
    name = "n" * 180
    (tmp_path / "study.yaml").write_text(
        yaml.safe_dump(
            {
                "name": name,
                "configs": [str(ROOT / "configs/digits.yaml")],
                "grids": {"all": {"seed_everything": [0, 1]}},
                "report": {
                    "tables": [{"name": name, **TABLE, "where": {"seed_everything": [0, 1]}}],
                    "comparisons": [],
                },
                "paired": [],
            }
        )
    )
    for command in ("plan", "report"):
        main(["study", command, str(tmp_path / "study.yaml"), "--runs", str(tmp_path / "runs")])
    assert (tmp_path / "runs" / f"{name}-report" / "tables" / f"{name}.tex").exists()
