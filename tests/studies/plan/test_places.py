"""A study works from anywhere: its paths are looked for in its own folder first, then in the
working folder, then among the project's files.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from callbacks.results import read_results
from cli import main
from core.errors import InputError
from studies.plan import places
from studies.plan.places import data_places
from studies.plan.study import Study

ROOT = Path(__file__).parents[3]
CIFAR = {"class_path": "datamodules.CIFAR10H", "init_args": {"root": "data"}}
OWN = {
    "data": {
        "class_path": "OwnVotes",
        "init_args": {"item": "item", "label": "label", "embeddings": "embeddings.npy"},
    },
    "model": {"network": {"class_path": "MLPHead"}},
    "trainer": {"accelerator": "cpu"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study with its votes and a config beside it, whose grids are those of a study in another
    folder with a config of its own.
    """
    folder = tmp_path / "[red]x[/red]:fire:"
    (folder / "data").mkdir(parents=True)
    (folder / "base").mkdir()
    rng = np.random.default_rng(0)
    rows = [(item, rng.choice(["no", "yes"])) for item in range(60) for _ in range(3)]
    (folder / "data/votes.csv").write_text(
        "item,label\n" + "".join(f"{item},{label}\n" for item, label in rows)
    )
    np.save(folder / "data/embeddings.npy", rng.normal(size=(60, 3)).astype(np.float32))
    (folder / "own.yaml").write_text(yaml.safe_dump(OWN))
    (folder / "base/epochs.yaml").write_text(yaml.safe_dump({"trainer": {"max_epochs": 1}}))
    base = {
        "name": "base",
        "configs": ["epochs.yaml"],
        "grids": {"all": {"seed_everything": [0, 1]}},
    }
    (folder / "base/base.yaml").write_text(
        yaml.safe_dump(
            {
                **base,
                "report": {"tables": [{"name": "t", "rows": "seed_everything", "columns": ["kl"]}]},
            }
        )
    )
    study = {
        "extends": "base/base.yaml",
        "name": "own",
        "options": {"data.votes": "votes.csv", "data.root": "data"},
        "paired": [],
    }
    (folder / "study.yaml").write_text(
        yaml.safe_dump({**study, "configs": ["own.yaml", "base/epochs.yaml"]})
    )
    return folder


def test_a_study_is_run_and_reported_from_any_folder_and_its_paths_are_printed_as_they_are(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "data").mkdir(parents=True)
    (elsewhere / "own.yaml").write_text("model: {network: LeNet}")  # the study's own comes first
    (elsewhere / "data/embeddings.npy").write_text("no array")
    (elsewhere / "metrics.py").write_text("raise SystemExit('of the user, not of the project')")
    runs = folder / "runs"
    command = [
        sys.executable,
        ROOT / "cli.py",
        "study",
        "run",
        folder / "study.yaml",
        "--runs",
        runs,
    ]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(runs) in done.stdout.replace("\n", "")
    from_root = Study.load(folder / "study.yaml").runs()
    monkeypatch.chdir(folder)
    here = Study.load("study.yaml").runs()
    assert [run.name for run in here] == [run.name for run in from_root]
    assert all(read_results(run.folder(runs)) for run in here)
    # as it is written, where that is right
    assert here[0].config["data"]["init_args"]["root"] == "data"
    assert from_root[0].config["data"]["init_args"]["root"] == str(folder / "data")
    assert not (elsewhere / "runs").exists()
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    for word in ("plan", "report"):
        main(["study", word, str(folder / "study.yaml"), "--runs", str(runs)])
    printed = capsys.readouterr().out
    assert (
        f"Start them with: python cli.py study run '{folder}/study.yaml' --runs '{runs}'\n"
        in printed
    )
    assert f"report: {runs}/own-report/report.html\n" in printed
    main(
        [
            "test",
            "--config",
            str(here[0].folder(runs) / "config.yaml"),
            "--trainer.default_root_dir",
            str(runs),
        ]
    )
    assert f"Written to {here[0].folder(runs)}/results.json\n" in capsys.readouterr().out


def test_the_studies_of_the_project_can_be_planned_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    at_home = {
        path.name: [run.name for run in Study.load(path).runs()]
        for path in (ROOT / "configs/studies").glob("digits*.yaml")
    }
    configs = {
        path.name: Study.load(path).configs for path in (ROOT / "configs/studies").glob("*.yaml")
    }
    assert all(not Path(name).is_absolute() for names in configs.values() for name in names)
    monkeypatch.chdir(tmp_path)
    assert {
        name: [run.name for run in Study.load(ROOT / "configs/studies" / name).runs()]
        for name in at_home
    } == at_home
    for name, written in configs.items():
        assert Study.load(ROOT / "configs/studies" / name).configs == [
            str(ROOT / config) for config in written
        ]


def test_what_a_study_names_is_looked_for_beside_it_then_where_one_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("here.yaml").write_text("seed_everything: 3")
    content = {
        "name": "x",
        "grids": {"all": {"data.batch_size": [8]}},
        "options": {"data.votes": "votes.csv"},
    }
    path = folder / "x.yaml"
    path.write_text(
        yaml.safe_dump(
            {**content, "configs": ["own.yaml", "here.yaml", "configs/trainer/cpu_small.yaml"]}
        )
    )
    assert Study.load(path).configs == [
        str(folder / "own.yaml"),
        "here.yaml",
        str(ROOT / "configs/trainer/cpu_small.yaml"),
    ]
    path.write_text(yaml.safe_dump({**content, "configs": ["absent.yaml"]}))
    with pytest.raises(
        InputError,
        match=r"x\.yaml: configs name absent\.yaml, which is not there: it is neither in the "
        r"study's folder .*x.*",
    ):
        Study.load(path)
    path.write_text(yaml.safe_dump({**content, "extends": "absent.yaml"}))
    with pytest.raises(InputError) as result:
        Study.load(path)
    assert (
        f"absent.yaml, which {path} extends, cannot be read as a study: it is neither in the "
        f"study's folder {folder}, " in str(result.value)
    )
    assert f"nor in the working folder {tmp_path}, nor in the project's {ROOT}." in str(
        result.value
    )


def test_folders_of_data_are_those_that_hold_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "PROJECT", tmp_path / "project")
    own = {
        "class_path": "datamodules.OwnVotes",
        "init_args": {"votes": "votes.csv", "root": "data", "cache": "data/cache"},
    }
    assert data_places(own, folder) == {"root": str(folder / "data")}
    shutil.copytree(folder / "data", "data")
    assert data_places(own, folder) == {"root": str(folder / "data")}
    (folder / "data/votes.csv").unlink()
    assert data_places(own, folder) == {}
    hub = {
        "class_path": "datamodules.OwnVotes",
        "init_args": {"votes": "somebody/votes", "root": "."},
    }
    assert data_places(hub, folder) == {}
    shutil.rmtree("data")
    assert data_places(CIFAR, folder) == {"root": str(folder / "data")}
    shutil.rmtree(folder / "data")
    (folder / "data/cifar-10h").mkdir(parents=True)
    (folder / "data/cifar-10h/.lock").touch()  # what a download that failed leaves
    assert data_places(CIFAR, folder) == {}
    shutil.copytree(ROOT / "configs", "project/data")
    assert data_places(CIFAR, folder) == {"root": str(tmp_path / "project/data")}
