"""A study's YAML: expanded to the runs that the command line would make, equal runs once, mistakes
named.
"""

from pathlib import Path

import pytest
import yaml

from core.errors import InputError
from experiment.configuration import resolve
from experiment.identity import run_name
from studies.plan.study import Study

ROOT = Path(__file__).parents[3]
DIGITS = str(ROOT / "configs/digits.yaml")


def study(tmp_path: Path, **content) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(
        yaml.safe_dump({"name": "small", "configs": [DIGITS], **content}, sort_keys=False)
    )
    return Study.load(path)


GRID = {
    "data.delivery": [
        "SoftLabels",
        {"class_path": "StochasticLabelSampling", "init_args": {"resample_every": 5}},
    ],
    "model.optimizer.init_args.lr": [0.001, 0.01],
    "model.optimizer.init_args.weight_decay": [0.0, 0.1],
    "seed_everything": [0, 1, 2, 7],
}


def test_every_cell_is_the_run_that_the_command_line_would_make(tmp_path: Path):
    runs = study(tmp_path, grids={"all": GRID}).runs()
    assert len({run.name for run in runs}) == len(runs) == 2 * 2 * 2 * 4
    for run in (runs[0], runs[13], runs[-1]):
        levels = run.factors["all"]
        options = ["--config", DIGITS, "--seed_everything", str(levels["seed_everything"])]
        options += ["--model.optimizer.init_args.lr", str(levels["model.optimizer.init_args.lr"])]
        options += [
            "--model.optimizer.init_args.weight_decay",
            str(levels["model.optimizer.init_args.weight_decay"]),
        ]
        options += ["--data.delivery", levels["data.delivery"].split("(")[0]]
        options += ["--data.delivery.resample_every", "5"] if "5" in levels["data.delivery"] else []
        assert run_name(resolve(options)) == run.name
        assert run.config == resolve(options)


def test_equal_runs_of_two_grids_are_one_run_with_both_places(tmp_path: Path):
    grids = {
        "main": {"data.delivery": ["SoftLabels", "Multipass"]},
        "family": {"data.delivery": ["Multipass", "DeterministicControl"]},
    }
    runs = study(tmp_path, grids=grids).runs()
    assert len(runs) == 3
    assert runs[1].factors == {
        "main": {"data.delivery": "Multipass"},
        "family": {"data.delivery": "Multipass"},
    }


def test_a_factor_can_set_several_options_under_one_name(tmp_path: Path):
    levels = {
        "short": {"trainer.max_epochs": 2, "data.batch_size": 32},
        "long": {"trainer.max_epochs": 9},
    }
    short, long = study(tmp_path, grids={"g": {"length": levels}}).runs()
    assert (
        short.config["trainer"]["max_epochs"],
        short.config["data"]["init_args"]["batch_size"],
    ) == (2, 32)
    assert (
        long.config["trainer"]["max_epochs"],
        long.config["data"]["init_args"]["batch_size"],
    ) == (9, 64)
    assert short.factors["g"] == {"length": "short"}


def test_another_dataset_has_its_own_options_and_not_those_of_the_first(tmp_path: Path):
    levels = {
        "digits": {"data": "Digits"},
        "photographs": {"data": "CIFAR10H", "data.eval_fraction": 0.3},
    }
    runs = study(
        tmp_path, grids={"g": {"dataset": levels, "data.delivery": ["SoftLabels", "Multipass"]}}
    ).runs()
    options = [
        "--config",
        DIGITS,
        "--data",
        "CIFAR10H",
        "--data.eval_fraction",
        "0.3",
        "--data.delivery",
        "Multipass",
    ]
    assert runs[-1].config == resolve(options)
    assert "annotators" not in runs[-1].config["data"]["init_args"]
    assert "annotators" in runs[0].config["data"]["init_args"]


def test_fixed_options_hold_for_all_runs_and_change_their_names(tmp_path: Path):
    plain = study(tmp_path, grids={"g": {"seed_everything": [0]}}).runs()
    changed = study(
        tmp_path, options={"trainer.max_epochs": 3}, grids={"g": {"seed_everything": [0]}}
    ).runs()
    assert changed[0].config["trainer"]["max_epochs"] == 3
    assert changed[0].name != plain[0].name


@pytest.mark.parametrize(
    ("grids", "message"),
    [
        (
            {"g": {"data.delivry": ["SoftLabels"]}},
            r"study.yaml, grid g, data.delivry = SoftLabels: data.delivry is not an option",
        ),
        (
            {"g": {"data.delivery": ["Soft"]}},
            r"study.yaml, grid g, data.delivery = Soft: data.delivery is Soft, which is not one of",
        ),
        ({"g": {"nonsense": [1]}}, r"study.yaml, grid g, nonsense = 1: .*nonsense"),
        ({"g": {}}, r"grids\.g is empty"),
        ({"g": {"data.delivery": []}}, r"grids\.g\.data\.delivery has no levels"),
        (
            {"g": {"data.delivery": "SoftLabels"}},
            r"grids\.g\.data\.delivery has no levels; they must be a list",
        ),
        (
            {"g": {"data.subsets": [["snli"], ["mnli"]]}},
            r"grids\.g\.data\.subsets has a level that is neither a word, a number nor a "
            r"class_path",
        ),
    ],
)
def test_mistakes_in_a_grid_are_named(tmp_path: Path, grids, message: str):
    with pytest.raises(InputError, match=message):
        study(tmp_path, grids=grids).runs()


@pytest.mark.parametrize(
    "content",
    ["", "- a list", "name: x", "name: [unclosed", "name: x\nconfigs: []\ngrids: {}\nmore: 1"],
)
def test_a_file_that_is_no_study(tmp_path: Path, content: str):
    (tmp_path / "study.yaml").write_text(content)
    with pytest.raises(InputError, match=r"study\.yaml"):
        Study.load(tmp_path / "study.yaml")


def test_a_study_that_extends_another_says_only_what_differs(tmp_path: Path):
    base = {
        "name": "base",
        "configs": [DIGITS],
        "options": {"trainer.max_epochs": 2},
        "report": {"scale": "full", "comment": "all"},
    }
    grids = {"main": {"data.delivery": ["SoftLabels", "Multipass"], "seed_everything": [0, 1, 2]}}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump({**base, "grids": grids}))
    (tmp_path / "small.yaml").write_text(
        yaml.safe_dump(
            {
                "extends": "base.yaml",
                "name": "small",
                "grids": {"main": {"seed_everything": [5]}},
                "report": {"scale": "small"},
            }
        )
    )
    small = Study.load(tmp_path / "small.yaml")
    assert (small.name, small.report) == ("small", {"scale": "small", "comment": "all"})
    assert [run.factors["main"] for run in small.runs()] == [
        {"data.delivery": delivery, "seed_everything": 5}
        for delivery in ("SoftLabels", "Multipass")
    ]
    assert all(run.config["trainer"]["max_epochs"] == 2 for run in small.runs())
    assert Study.load(tmp_path / "base.yaml").name == "base"


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("absent.yaml", "absent.yaml, which {path} extends, cannot be read as a study"),
        ("small.yaml", "small.yaml extends {path}, which extends it in turn"),
    ],
)
def test_what_cannot_be_extended_is_told(tmp_path: Path, extends: str, message: str):
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump({"extends": extends, "name": "small"}))
    with pytest.raises(InputError, match=message.format(path=path)):
        Study.load(path)


def test_a_run_of_two_grids_has_the_probes_of_both_whichever_comes_first(tmp_path: Path):
    probes = {
        "none": [],
        "dynamics": [{"class_path": "TrainingDynamics"}],
        "strata": [{"class_path": "StratumScores"}],
    }

    def runs(*grids: str):
        path = tmp_path / "probes.yaml"
        content = {
            name: {"probes": {name: {"trainer.callbacks": probes[name]}}, "seed_everything": [0]}
            for name in grids
        }
        path.write_text(
            yaml.safe_dump(
                {
                    "name": "probes",
                    "configs": [str(ROOT / "configs/digits.yaml")],
                    "grids": content,
                },
                sort_keys=False,
            )
        )
        return Study.load(path).runs()

    for order in (("none", "dynamics"), ("dynamics", "none")):
        (run,) = runs(*order)
        assert [callback["class_path"] for callback in run.config["trainer"]["callbacks"]] == [
            "callbacks.TrainingDynamics"
        ]
    with pytest.raises(
        InputError,
        match="is in several grids, with different callbacks in each; one of them must list the "
        "callbacks of all",
    ):
        runs("dynamics", "strata")
