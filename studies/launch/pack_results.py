"""A member of a pack that has been trained, left as an ordinary run."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from callbacks.figures.drawing import draw_pictures
from callbacks.history import write_history
from callbacks.prediction_table import write_predictions
from callbacks.records.training_record import TrainingRecord, write_training
from callbacks.records.worth import with_worth
from callbacks.results import describe_run, results_of_test, write_before_drawing
from experiment.build import build, is_probe
from experiment.checkpoints import write_checkpoint
from experiment.configuration import write_config
from experiment.run_checkpoints import best_checkpoint
from experiment.steps_left import probes_of
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.packed.pack_evaluation import read_from_device
from lightning_modules.packed.pack_member import Member
from metrics import every_metric
from studies.plan.study import Run


def training_record(member: Member, run: Run) -> TrainingRecord:
    """How a run's training ended, which may be a prefix of its member's."""
    planned = run.config["trainer"]["max_epochs"]
    failed = member.failed if planned not in member.at_stop else None
    epochs = min(len(member.history), planned)
    steps = epochs * -(-len(member.data.rows("train")) // member.data.batch_size)
    ended = "diverged" if failed else "epochs" if epochs == planned else "early_stopping"
    return TrainingRecord(ended, epochs, planned, steps, reason=failed or "")


def write_member(
    member: Member, run: Run, folder: Path, predict: bool, device: torch.device
) -> None:
    """Checkpoint, config, history, results and, last of all, pictures: as if the run had been
    alone, and tested on this device.
    """
    epochs = run.config["trainer"]["max_epochs"]
    best_epoch, state = member.at_stop.get(epochs, (member.best_epoch, member.best_state))
    checkpoint = best_checkpoint(folder)
    val_loss = member.history[best_epoch]["val/loss"]
    content = {
        "state_dict": state,
        "epoch": best_epoch,
        "val_loss": val_loss,
        "pytorch-lightning_version": version("lightning"),
    }
    write_config(run.config, folder)
    write_checkpoint(checkpoint, content, keep=False)
    write_history(folder, member.history[:epochs])
    network, data = member.classifier.network, member.data
    network.load_state_dict({name.removeprefix("network."): value for name, value in state.items()})
    member.classifier.to(device)
    arguments = run.config["data"]["init_args"]
    delivery, votes_per_item, targets = (
        build(arguments.get(option)) for option in ("delivery", "votes_per_item", "targets")
    )
    record = training_record(member, run)
    write_training(folder, record)
    about = describe_run(data, delivery, votes_per_item, network, folder, checkpoint, targets)
    metrics = every_metric("", data.ordinal)
    probs, annotator_probs, _ = predictions(member.classifier, data, data.corpus.splits["test"])
    for batch in zip(
        probs.split(data.batch_size), annotator_probs.split(data.batch_size), strict=True
    ):
        metrics.update(*batch)  # in the batches of a solo run, for the same sums to the last bit
    if predict:
        probs_of_all, _, index = predictions(
            member.classifier, data, np.arange(len(data.corpus.votes))
        )
        write_predictions(folder, probs_of_all, data.annotator_probs, index, data.corpus.splits)
    numbers, notes, pictures = (
        {"val_loss": val_loss, **{name: float(value) for name, value in metrics.compute().items()}},
        [],
        {},
    )
    for callback in run.config["trainer"].get("callbacks") or []:
        if is_probe(callback):
            result = build(callback).run(member.classifier, data, folder)
            result.write_tables(folder)
            numbers |= result.metrics
            notes += result.notes
            pictures |= result.figures
    results = results_of_test(about, record, len(probs), probes_of(run.config), numbers, notes)
    results = with_worth(results, data)
    write_before_drawing(folder / "results.json", results, lambda: draw_pictures(pictures, folder))
    member.classifier.cpu()  # of many members, one at a time is on the device


@torch.no_grad()
def predictions(
    classifier: AnnotatorClassifier, data: Any, rows: np.ndarray
) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted and annotator distributions of these items, computed batch by batch as a solo run
    would.
    """
    classifier.eval()
    batches = [
        (classifier(inputs.to(classifier.device)).double().softmax(-1), index)
        for inputs, index in data.loader(rows, training=False)
    ]
    index = torch.cat([index for _, index in batches])
    (probs,) = read_from_device(torch.cat([probs for probs, _ in batches]))
    return probs, data.annotator_probs.cpu()[index], index
