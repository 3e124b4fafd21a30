"""`study evaluate`: scores and probes that came after the training, for all finished runs of a
study.
"""

from collections.abc import Callable
from pathlib import Path

from callbacks.results import read_results
from core.errors import InputError
from core.interruption import Interrupted
from datamodules import VoteDataModule
from experiment.build import build_data
from studies.evaluate_run import evaluate_run, lack_of
from studies.plan.known_data import check_data
from studies.plan.run_checks import check_probes
from studies.plan.second_stage import second_stage
from studies.plan.study import Run, Study


def evaluate_study(
    study: Study, runs: Path, day: str, say: Callable[[str], object]
) -> dict[str, str]:
    """Add to the results of every finished run what they lack; returns why runs could not be
    scored.

    Nothing is trained, and no number is replaced. Given again, it does what is left. `day` is noted
    beside each number that is added.
    """
    cells = study.runs()
    check_probes(cells, study.path)
    names = {run.name for run in cells}
    cells += [run for run in second_stage(study, cells, runs).runs if run.name not in names]
    finished = {
        run.name: results
        for run in cells
        if (results := read_results(run.folder(runs))) is not None
    }
    done = [run for run in cells if run.name in finished]
    check_data((run.config, run.folder(runs)) for run in done)
    lacks = {run.name: lack_of(run.config, finished[run.name]) for run in done}
    for run in done:
        for probe in lacks[run.name].changed:
            say(
                f"{run.name}: {probe['class_path']} was measured with other options, whose numbers "
                "are not replaced here; study run measures it anew."
            )
    left = sorted((run for run in done if lacks[run.name]), key=_data_of)
    added: dict[str, None] = {}
    failures: dict[str, str] = {}
    at_hand = _DataAtHand()
    for place, run in enumerate(left):
        try:
            result = evaluate_run(run, run.folder(runs), lambda run=run: at_hand.of(run), day, say)
        except InputError as error:
            failures[run.name] = str(error)
            continue
        except Interrupted as stop:
            raise Interrupted(
                f"{study.name}: {stop}; {place} of {len(left)} runs are scored anew, and the same "
                "command continues.",
                stop.code,
            ) from stop
        added |= dict.fromkeys(result.added)
        for message in result.messages:
            say(f"{run.name}: {message}")
    say(
        f"{len(done)} of {len(cells)} runs are finished; {len(left) - len(failures)} of them were "
        f"scored anew, and {len(done) - len(left)} lacked nothing."
    )
    if added:
        say(f"Added: {', '.join(sorted(added))}.")
    return failures


def _data_of(run: Run) -> str:
    return repr(run.config["data"])


class _DataAtHand:
    """The data of the run that was scored last, which the next may have in common with it."""

    def __init__(self):
        self.key, self.data = "", None

    def of(self, run: Run) -> VoteDataModule:
        if self.data is None or self.key != _data_of(run):
            self.key, self.data = _data_of(run), build_data(run.config)
        return self.data
