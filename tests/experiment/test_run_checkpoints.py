"""A run's name: the same for all that does not change its result, different for all that does."""

from copy import deepcopy

import pytest

from experiment.identity import run_name

CONFIG = {
    "seed_everything": 3,
    "data": {
        "class_path": "datamodules.CIFAR10H",
        "init_args": {
            "root": "data",
            "batch_size": 128,
            "votes_per_item": None,
            "delivery": {"class_path": "datamodules.Multipass"},
        },
    },
    "model": {
        "network": {"class_path": "lightning_modules.networks.ResNet18", "init_args": {"width": 64}}
    },
    "trainer": {"max_epochs": 200, "devices": 1, "callbacks": None},
}


def changed(path: str, value) -> dict:
    config = deepcopy(CONFIG)
    *parents, last = path.split(".")
    part = config
    for parent in parents:
        part = part[parent]
    part[last] = value
    return config


def test_the_name_says_dataset_delivery_and_seed():
    assert run_name(CONFIG).startswith("cifar10h-multipass-seed3-")
    assert run_name(changed("data.init_args.votes_per_item", 5)).startswith(
        "cifar10h-multipass-k5-seed3-"
    )


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data.init_args.root", "/elsewhere"),
        ("data.init_args.num_workers", 4),
        ("trainer.devices", 8),
        ("trainer.enable_progress_bar", False),
        ("trainer.strategy", "ddp"),
        ("trainer.num_nodes", 2),
        ("trainer.callbacks", [{"class_path": "callbacks.Results"}]),
        ("model.compile", False),  # an option that came later, at its default
    ],
)
def test_where_and_how_it_runs_does_not_change_the_name(path: str, value):
    assert run_name(changed(path, value)) == run_name(CONFIG)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed_everything", 4),
        ("data.init_args.batch_size", 64),
        ("data.init_args.votes_per_item", 5),
        ("data.init_args.delivery", {"class_path": "datamodules.SoftLabels"}),
        ("model.network.init_args.width", 8),
        ("trainer.max_epochs", 100),
        ("trainer.precision", "bf16-mixed"),
        ("model.compile", True),
        (
            "trainer.callbacks",
            [
                {
                    "class_path": "lightning.pytorch.callbacks.EarlyStopping",
                    "init_args": {"monitor": "val/soft_nll"},
                }
            ],
        ),
    ],
)
def test_what_changes_the_result_changes_the_name(path: str, value):
    assert run_name(changed(path, value)) != run_name(CONFIG)
