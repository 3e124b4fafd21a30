"""One finished run scored anew from its best checkpoint: what its results lack is added, and no
number is replaced.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lightning import Trainer

from callbacks.figures.drawing import Picture, draw_pictures
from callbacks.probe import Probe, ProbeResult
from callbacks.records.known_data import know_data
from callbacks.records.results_file import (
    read_results,
    undefined_in_words,
    write_before_drawing,
    write_results,
)
from callbacks.records.worth import lacks_worth, with_worth
from core.atomic_io import remove_partial_files
from core.errors import InputError
from core.folder_lock import folder_lock
from datamodules import VoteDataModule
from experiment.build import build, build_classifier, class_of
from experiment.checkpoints import read_checkpoint
from experiment.identity import all_options
from experiment.processes.own_signals import keep_own_signals
from experiment.run_checkpoints import best_checkpoint, check_checkpoint
from experiment.steps_left import missing_probes
from lightning_modules import AnnotatorClassifier
from metrics import registered
from studies.plan.study import Run

# What single precision and another machine's arithmetic may change in a score
ROUNDING = {"rel_tol": 1e-4, "abs_tol": 1e-6}
SHOWN = 3  # numbers in a sentence about those that came out different


@dataclass(frozen=True)
class Lack:
    """What a run's results do not hold yet."""

    scores: list[str]  # of the registry
    probes: list[dict[str, Any]]  # that its config lists, and no test has measured
    # the same, but an earlier test has measured that class with other options
    changed: list[dict[str, Any]]
    worth: bool  # floors and ceilings of its scores, which need no model

    def __bool__(self) -> bool:
        return self.needs_model or self.worth

    @property
    def needs_model(self) -> bool:
        """Whether the checkpoint is to be tested again."""
        return bool(self.scores or self.probes)


@dataclass
class Evaluation:
    """What was added to a run's results, and what a person should know about it."""

    added: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


def lack_of(config: dict[str, Any], results: dict[str, Any]) -> Lack:
    """What a run with this config and these results could be asked for and does not say."""
    measured = {probe["class_path"] for probe in results.get("probes", [])}
    missing = missing_probes(config, results)
    return Lack(
        [name for name in registered(_is_ordinal(config)) if name not in results["metrics"]],
        [probe for probe in missing if probe["class_path"] not in measured],
        [probe for probe in missing if probe["class_path"] in measured],
        lacks_worth(results),
    )


def evaluate_run(
    run: Run, folder: Path, data: Callable[[], VoteDataModule], day: str, say: Callable[[str], Any]
) -> Evaluation:
    """Add to the run's `results.json` what it lacks.

    `data` gives the run's data, set up; `day` is noted beside each number that is added. Nobody
    else works on the run meanwhile. Whenever it is interrupted, the results are as they were or
    complete.
    """
    with folder_lock(folder, "scores this run anew", say=say):
        remove_partial_files(folder, of="results.json")
        results = read_results(folder)  # another process may have added to it
        lack = lack_of(run.config, results) if results else None
        if not results or not lack:
            return Evaluation()
        checkpoint = best_checkpoint(folder)
        if lack.needs_model:
            check_checkpoint(checkpoint)
        know_data(folder, its_data := data(), all_options(run.config), write=False)
        if not lack.needs_model:
            write_results(folder, _with_worth(results, its_data))
            return Evaluation(["worth"])
        classifier, scores = _tested(run.config, its_data, checkpoint, folder)
        seen = dict(scores)
        for probe in _probes_of_scores(results) if lack.scores else []:
            seen |= probe.run(classifier, its_data, folder).metrics
        notes: list[str] = []
        pictures: dict[str, Picture] = {}
        for entry in lack.probes:
            result: ProbeResult = build(entry).run(classifier, its_data, folder)
            result.write_tables(folder)
            seen |= result.metrics
            notes += result.notes
            pictures |= result.figures
        messages = _different(results["metrics"], seen)
        added = {name: value for name, value in seen.items() if name not in results["metrics"]}
        origin = {"version": _version(), "date": day}
        evaluated = {
            **results,
            "probes": [*results.get("probes", []), *lack.probes],
            "metrics": dict(sorted({**added, **results["metrics"]}.items())),
            "notes": list(
                dict.fromkeys(
                    [*results.get("notes", []), *notes, *undefined_in_words(added), *messages]
                )
            ),
            "evaluated": {**results.get("evaluated", {}), **dict.fromkeys(added, origin)},
        }
        write_before_drawing(
            folder / "results.json",
            _with_worth(evaluated, its_data),
            lambda: draw_pictures(pictures, folder),
        )
        return Evaluation([*sorted(added), *(["worth"] if lack.worth else [])], messages)


def _with_worth(results: dict[str, Any], data: VoteDataModule) -> dict[str, Any]:
    """What scores are worth, where that is not said yet."""
    found = with_worth(results, data)
    return {**found, "worth": {**found["worth"], **results.get("worth", {})}}


def _tested(
    config: dict[str, Any], data: VoteDataModule, checkpoint: Path, folder: Path
) -> tuple[AnnotatorClassifier, dict[str, float]]:
    """The classifier with its best weights, and every score of its test, as `test` computes it."""
    options = config["trainer"]
    classifier = build_classifier(config, data)
    if str(options.get("precision")).startswith("64"):
        classifier.double()  # before its weights come, which would be rounded
    try:
        classifier.load_state_dict(read_checkpoint(checkpoint)["state_dict"])
    except RuntimeError as error:
        raise InputError(
            f"{checkpoint} is of another architecture than this study's config describes; use the "
            "config that it was trained with."
        ) from error
    trainer = Trainer(
        default_root_dir=folder,
        accelerator=options.get("accelerator") or "auto",
        devices=1,
        precision=options.get("precision"),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        inference_mode=False,  # probes differentiate
    )
    keep_own_signals(trainer)
    trainer.test(classifier, datamodule=data, verbose=False)
    scores = {
        name.removeprefix("test/"): float(value) for name, value in trainer.callback_metrics.items()
    }
    return classifier.to(trainer.strategy.root_device), scores


def _is_ordinal(config: dict[str, Any]) -> bool:
    """What the run's datamodule will say, without its data."""
    data = config["data"]
    return data.get("init_args", {}).get("ordinal", class_of(data).ordinal)


def _probes_of_scores(results: dict[str, Any]) -> list[Probe]:
    """The probes of earlier tests that give every score in forms of its own, as by stratum."""
    return [
        build(probe)
        for probe in results.get("probes", [])
        if getattr(class_of(probe), "of_every_score", False)
    ]


def _different(before: dict[str, float], now: dict[str, float]) -> list[str]:
    """A sentence where numbers come out different from those that the results hold."""
    other = [
        f"{name} ({before[name]:.6g} in results.json, {value:.6g} now)"
        for name, value in now.items()
        if name in before
        and not math.isclose(before[name], value, **ROUNDING)
        and not (math.isnan(before[name]) and math.isnan(value))
    ]
    if not other:
        return []
    more = f" and {len(other) - SHOWN} more" * (len(other) > SHOWN)
    return [
        f"scored anew, this run's checkpoint gives other numbers than its test did, which were "
        f"not replaced: {', '.join(other[:SHOWN])}{more}."
    ]


def _version() -> str:
    try:
        return version("plurality")
    except PackageNotFoundError:  # run from its folder, without having been installed
        return "not installed"
