"""What a user does with a study: `studies.study_command` has read what was typed."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from callbacks.results import read_failure, read_results
from core.interruption import DIVERGED, Interrupted
from core.terminal import plain_console
from experiment.steps_left import steps_left
from studies.launch.begun_jobs import begun_jobs
from studies.launch.gpu_slots import visible_gpus
from studies.launch.local_launcher import launch, study_folder
from studies.launch.slurm_launcher import ClusterOptions, launch_on_slurm
from studies.plan.known_data import check_data
from studies.plan.packing import Job, jobs_of
from studies.plan.run_checks import check_probes, check_results
from studies.plan.second_stage import SecondStage, second_stage
from studies.plan.study import Run, Study
from studies.planned_jobs import tell_jobs
from studies.typed_commands import typed_command


def do(study: Study, runs: Path, options: argparse.Namespace) -> None:
    """Do a command with a study, both of which are known to be right."""
    console = plain_console()
    processes = options.processes or max(os.cpu_count() or 1, len(visible_gpus()))
    if options.command == "plan":
        plan(study, runs, processes, _gpus(options, processes), console)
        if options.calibrate:
            tell_measured_cost(study, runs, console)
    elif options.command == "run":
        run(study, runs, processes, options, console)
    elif options.command == "evaluate":
        from studies.evaluate_command import evaluate_command

        evaluate_command(study, runs, partial(_say, console))
    else:
        from studies.report.command import report_command

        copy = Path(options.copy) if options.copy else None
        report_command(study, runs, copy, partial(_say, console))


def run(
    study: Study, runs: Path, processes: int, options: argparse.Namespace, console: Console
) -> None:
    """Do what is left of the grids, then of what selections choose from them.

    Given again, it goes on from wherever it was.
    """
    cells = study.runs()
    _check(study, cells, runs)
    check_data((run.config, run.folder(runs)) for run in cells if read_results(run.folder(runs)))
    try:
        cells, failures, waiting = _run_stages(study, cells, runs, processes, options, console)
    except Interrupted as stop:
        done = sum(read_results(run.folder(runs)) is not None for run in cells)
        raise Interrupted(
            f"{study.name}: {stop}; {done} of {len(cells)} runs are done, and the same command "
            "continues.",
            stop.code,
        ) from stop
    results = {run.name: read_results(run.folder(runs)) for run in cells}
    diverged = {
        run.name: read_failure(run.folder(runs)) for run in cells if results[run.name] is None
    }
    missing = [name for name, reason in diverged.items() if reason is None]
    counts = [
        f"{sum(result is not None for result in results.values())} of {len(cells)} runs are done"
    ]
    counts += [f"{len(diverged) - len(missing)} diverged"] if len(diverged) > len(missing) else []
    counts += [f"{len(missing)} are missing"] if missing else []
    _say(console, f"{', '.join(counts)}, in {runs}")
    for run in cells:
        if reason := diverged.get(run.name):
            _say(
                console,
                f"diverged: {run.name}: {reason}; to try it again, delete {run.folder(runs)}",
                "red",
            )
    for failure in failures + waiting:
        _say(console, f"failed: {failure}", "red")
    if failures or waiting or missing:
        sys.exit(1)
    if diverged:
        sys.exit(DIVERGED)


def _check(study: Study, cells: list[Run], runs: Path) -> None:
    """Whatever can be found out about a study before anything trains."""
    check_results(cells, study.path)
    check_probes(cells, study.path)
    if study.report:
        from studies.report.planned_runs import check_planned_report

        check_planned_report(study, cells, runs)


def _run_stages(
    study: Study,
    cells: list[Run],
    runs: Path,
    processes: int,
    options: argparse.Namespace,
    console: Console,
) -> tuple[list[Run], list[str], list[str]]:
    """The runs of both stages, what failed of them, and what the second still waits for."""
    failures = _launch(study, cells, runs, processes, options, console)
    waiting = []
    if study.selections:
        stage = second_stage(study, cells, runs)
        waiting = [sentence for name in study.selections if (sentence := stage.waiting(name))]
        if chosen := _further(cells, stage):
            console.print(
                f"second stage: {len(stage.runs)} runs of {', '.join(study.selections)}, "
                f"{len(chosen)} of them not in a grid"
            )
            failures += _launch(study, chosen, runs, processes, options, console)
            cells = cells + chosen
    return cells, failures, waiting


def _say(console: Console, sentence: str, style: str | None = None) -> None:
    """A line as it is: brackets in a path are no markup."""
    console.print(sentence, style=style, soft_wrap=True, markup=False, highlight=False)


def _launch(
    study: Study,
    cells: list[Run],
    runs: Path,
    processes: int,
    options: argparse.Namespace,
    console: Console,
) -> list[str]:
    cut = partial(_cut, study, cells, runs, processes, _gpus(options, processes))
    if options.launcher == "slurm":
        cluster = ClusterOptions(
            options.partition,
            options.max_parallel,
            options.hours,
            options.cpus,
            options.gpus,
            options.tasks,
        )
        return launch_on_slurm(study, cut, runs, cluster, console)
    return launch(study, cut, runs, processes, console)


def _gpus(options: argparse.Namespace, processes: int) -> int:
    """How many GPUs jobs may have at a time: those of this machine, or as many as Slurm gives."""
    if options.launcher == "slurm":
        return processes if options.gpus else 0
    return len(visible_gpus())


def _cut(study: Study, cells: list[Run], runs: Path, processes: int, gpus: int) -> list[Job]:
    begun = begun_jobs(study_folder(study, runs), cells, runs, gpus)
    return jobs_of(cells, processes, begun, gpus)


def _further(first: list[Run], stage: SecondStage) -> list[Run]:
    """The runs of the second stage that are not those of a grid."""
    names = {run.name for run in first}
    return [run for run in stage.runs if run.name not in names]


def plan(study: Study, runs: Path, processes: int, gpus: int, console: Console) -> None:
    """List what there is to do, how and where it will be done, why, and what it will cost; of a
    second stage, as much as is known.
    """
    cells = study.runs()
    _check(study, cells, runs)
    tell_jobs(
        study.name,
        study.predict,
        _cut(study, cells, runs, processes, gpus),
        runs,
        processes,
        gpus,
        console,
    )
    if study.selections:
        stage = second_stage(study, cells, runs)
        for name, selection in study.selections.items():
            decided = f"; {waiting}" if (waiting := stage.waiting(name)) else ""
            _say(console, f"Then a second stage, {selection.in_words()}{decided}.")
        if chosen := _further(cells, stage):
            tell_jobs(
                f"{study.name}, second stage",
                study.predict,
                _cut(study, chosen, runs, processes, gpus),
                runs,
                processes,
                gpus,
                console,
            )
    _say(console, f"Start them with: {typed_command('run', study.path, runs)}")


def tell_measured_cost(study: Study, runs: Path, console: Console) -> None:
    """What the runs that are left would take on this device, from some of their own steps."""
    from studies.plan.timing import calibrate

    left = [run for run in study.runs() if steps_left(run.config, run.folder(runs), study.predict)]
    for result in calibrate(left, study.predict):
        console.print(result.sentence, soft_wrap=True, highlight=False)
