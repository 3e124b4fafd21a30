"""Names that last: an option that is added leaves every name as it is, and a default cannot change
without changing them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from lightning import Callback
from lightning.pytorch.callbacks import EarlyStopping

import callbacks
import datamodules
import lightning_modules.networks
from core.errors import InputError
from datamodules.votes.delivery import LabelSmoothing
from experiment import configuration, option_defaults
from experiment.configuration import resolve
from experiment.identity import all_options, earlier_names, identity, run_name
from experiment.option_defaults import (
    SCHEMA,
    changed_defaults,
    live_defaults,
    live_snapshot,
    snapshot,
)
from lightning_modules.networks import Network

ROOT = Path(__file__).parents[2]
DIGITS = ["--config", str(ROOT / "configs/digits.yaml")]
STOP = ["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor", "val/loss"]


@pytest.fixture(scope="module")
def live() -> dict:
    return live_snapshot()


def test_no_default_has_changed_without_a_new_schema_number(live: dict):
    """Raise SCHEMA in experiment/option_defaults.py and write its file, if this fails; the
    docstring there says how.
    """
    assert changed_defaults(snapshot(), live) == []


def test_every_default_is_in_the_snapshot(live: dict):
    """Run `python -m experiment.option_defaults`, if this fails: an option was added."""
    assert {
        path: options.keys() - snapshot().get(path, {}).keys()
        for path, options in live.items()
        if options.keys() - snapshot().get(path, {}).keys()
    } == {}


def test_a_changed_default_is_refused_until_the_number_is_raised(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(option_defaults, "FILES", tmp_path)
    monkeypatch.setattr(option_defaults, "live_snapshot", lambda: {"a.B": {"padding": 4}})
    option_defaults.main()
    monkeypatch.setattr(
        option_defaults, "live_snapshot", lambda: {"a.B": {"padding": 4, "flip": True}}
    )
    option_defaults.main()
    path = tmp_path / f"schema_{SCHEMA}.json"
    assert json.loads(path.read_text()) == {"a.B": {"padding": 4, "flip": True}}
    monkeypatch.setattr(option_defaults, "live_snapshot", lambda: {"a.B": {"padding": 5}})
    with pytest.raises(InputError, match=r"padding is 5 by default and was 4 .*raise SCHEMA"):
        option_defaults.main()
    monkeypatch.setattr(option_defaults, "SCHEMA", SCHEMA + 1)
    option_defaults.main()
    assert json.loads((tmp_path / f"schema_{SCHEMA + 1}.json").read_text()) == {
        "a.B": {"padding": 5}
    }


class PaddedDigits(datamodules.Digits):
    def __init__(self, padding: int = 4, **kwargs):
        super().__init__(**kwargs)
        self.padding = padding


class WiderFFN(Network):
    def __init__(
        self, input_shape: tuple[int, ...], num_classes: int, hidden: int = 128, bias: bool = True
    ):
        super().__init__()


@dataclass(frozen=True)
class SofterLabels(LabelSmoothing):
    epsilon: float = 0.1
    floor: float = 0.0


class LaterStopping(EarlyStopping):
    def __init__(self, monitor: str, patience: int = 3, after: int = 0):
        super().__init__(monitor, patience=patience)


ADDED = {
    "datamodule": (datamodules, "Digits", PaddedDigits, [], "data.padding"),
    "network": (lightning_modules.networks, "SimpleFFN", WiderFFN, [], "model.network.bias"),
    "delivery": (
        datamodules,
        "LabelSmoothing",
        SofterLabels,
        ["--data.delivery", "LabelSmoothing"],
        "data.delivery.floor",
    ),
}


@pytest.mark.parametrize("where", ADDED)
def test_an_option_that_is_added_with_a_default_changes_no_name(where: str, monkeypatch):
    """The class is there under the same path, with one option more."""
    module, name, with_option, words, option = ADDED[where]
    config = resolve([*DIGITS, *words])
    before, earlier = run_name(config), earlier_names(config)
    monkeypatch.setattr(module, name, with_option)
    live_defaults.cache_clear()
    *path, last = option.split(".")
    part = config
    for key in path:
        part = part[key].get("init_args", part[key]) if key == "data" else part[key]
    part = part.setdefault("init_args", {}) if "class_path" in part else part
    part[last] = live_defaults(f"{module.__name__}.{name}")[last]  # as the command line fills it in
    assert run_name(config) == before
    assert earlier_names(config) == earlier
    part[last] = 7
    assert run_name(config) != before
    monkeypatch.undo()
    live_defaults.cache_clear()


def test_an_option_that_is_added_to_a_callback_changes_no_name(monkeypatch):
    from lightning.pytorch import callbacks as theirs

    config = resolve([*DIGITS, *STOP])
    before = run_name(config)
    monkeypatch.setattr(theirs, "EarlyStopping", LaterStopping)
    live_defaults.cache_clear()
    config["trainer"]["callbacks"][0]["init_args"]["after"] = 0
    assert run_name(config) == before
    config["trainer"]["callbacks"][0]["init_args"]["after"] = 1
    assert run_name(config) != before
    monkeypatch.undo()
    live_defaults.cache_clear()


def test_a_default_of_today_that_differs_from_the_committed_one_is_named(monkeypatch):
    """So that a newer torch with another default never meets runs of the old one."""
    config = resolve(DIGITS)
    committed = {
        **snapshot(),
        "datamodules.Digits": {**snapshot()["datamodules.Digits"], "batch_size": 32},
    }
    before = run_name(config)
    monkeypatch.setattr(option_defaults, "snapshot", lambda schema=SCHEMA: committed)
    assert (
        identity(config)["data"]["init_args"]["batch_size"]
        == config["data"]["init_args"]["batch_size"]
        != 32
    )
    assert run_name(config) != before or "batch_size" in identity(config)["data"]["init_args"]


def test_only_what_differs_from_its_default_is_named():
    explicit = [
        *DIGITS,
        "--model.optimizer",
        "Adam",
        "--model.optimizer.lr",
        "0.001",
        "--data.delivery",
        "SoftLabels",
        "--trainer.max_steps",
        "-1",
    ]
    assert run_name(resolve(explicit)) == run_name(resolve(DIGITS))
    assert identity(resolve(DIGITS))["data"]["init_args"] == {"batch_size": 64}
    assert all_options(resolve(DIGITS))["data"]["init_args"]["votes_per_item"] is None


def test_callbacks_say_themselves_whether_they_change_what_is_learned():
    ours = [
        kind
        for kind in (getattr(callbacks, name) for name in callbacks.__all__)
        if issubclass(kind, Callback)
    ]
    assert len(ours) == len(callbacks.__all__)
    assert not any(kind.changes_training for kind in ours)
    plain, probed = resolve(DIGITS), resolve([*DIGITS, "--trainer.callbacks+=TrainingDynamics"])
    assert run_name(plain) == run_name(probed) != run_name(resolve([*DIGITS, *STOP]))


def test_runs_of_the_version_before_are_found_by_the_names_that_they_had():
    """As that version gave them."""
    names = {
        "digits": "digits-softlabels-seed0-3705116a5b",
        "cifar10h": "cifar10h-softlabels-seed0-8da5f4e3ee",
        "chaosnli": "chaosnli-softlabels-seed0-5e34a55ab3",
        "popquorn": "popquorn-softlabels-seed0-520ed58392",
    }
    for config, name in names.items():
        assert earlier_names(resolve(["--config", str(ROOT / f"configs/{config}.yaml")])) == [name]


def test_data_has_a_name_of_its_own(monkeypatch):
    named = resolve([*DIGITS, "--data.name", "My_digits-2"])
    assert run_name(named).startswith("my_digits-2-softlabels-seed0-")
    assert run_name(named) != run_name(resolve(DIGITS))
    assert datamodules.Digits(name="My_digits-2").name == "My_digits-2"
    assert datamodules.Digits().name == "Digits"
    for wrong in ("", "a" * 41, "a b", "../x", "ä"):
        with pytest.raises(InputError, match=r"data.name is"):
            datamodules.Digits(name=wrong)
    assert configuration.resolve(DIGITS)["data"]["init_args"]["name"] is None
