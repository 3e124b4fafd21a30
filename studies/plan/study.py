"""A study: one YAML that names grids of runs, expanded to resolved configs.

Equal runs, in one study or two, are one run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from core.errors import InputError, hint
from studies.plan.places import check_configs
from studies.plan.selection import Selection, Selections
from studies.plan.study_checks import (
    Grids,
    ReportEntries,
    RunOptions,
    StudyName,
    check_names_of_files,
)
from studies.plan.study_file import read_study_file
from studies.schema.calibrate_factor import CALIBRATE, check_levels, split_off, with_calibrators
from studies.schema.checks import Checks
from studies.schema.levels import Levels, all_levels, labelled_levels
from studies.schema.options import (
    Flag,
    Names,
    Reading,
    Text,
    is_needed,
    option,
    options_of,
    read_entry,
)

if TYPE_CHECKING:  # a file with a mistake is told so without what its runs are made with
    from studies.plan.cells import Cell, Cells


@dataclass(frozen=True)
class Run:
    """One cell of a study: its resolved config, and the level of every factor by which it came
    about, for each grid it belongs to.
    """

    name: str
    config: dict[str, Any] = field(repr=False)
    factors: dict[str, dict[str, Any]]  # grid -> factor -> level
    # grid -> the levels of its factor `calibrate`, all of which this one run has
    calibrate: dict[str, list[str]] = field(default_factory=dict)

    def folder(self, runs: Path) -> Path:
        """Where it lies: by its name, or by the one that an earlier version gave it, where that is
        there.
        """
        from experiment.identity import run_folder

        return run_folder(runs, self.config, self.name)

    def is_in(self, grid: str, where: dict[str, list[Any]]) -> bool:
        """Whether it is one of these runs of a grid.

        What is done after training tells no runs apart.
        """
        levels = self.factors.get(grid)
        return levels is not None and all(
            levels[factor] in chosen for factor, chosen in where.items() if factor != CALIBRATE
        )

    def merge_callbacks(self, config: dict[str, Any], source: Path) -> None:
        """Also take the probes that this run has in another grid, which are no part of its name:
        whichever list holds the other, in any order of grids.
        """
        mine, theirs = ((one["trainer"].get("callbacks") or []) for one in (self.config, config))
        if all(callback in mine for callback in theirs):
            return
        if all(callback in theirs for callback in mine):
            self.config["trainer"]["callbacks"] = theirs
        else:
            raise InputError(
                f"{source}: {self.name} is in several grids, with different callbacks in each; "
                "one of them must list the callbacks of all."
            )


@dataclass(frozen=True)
class Study:
    """What a study's YAML says.

    A grid maps factors to their levels. A factor is either an option (`data.delivery: [SoftLabels,
    Multipass]`) or a name of the author's own whose levels each set several options (`dataset:
    {digits: {data: Digits, ...}, ...}`). Factors under `paired` (the seed, as a rule) tie runs
    together: those that agree in them share split, initial weights and batch order, and are
    compared pairwise.

    The factor `calibrate: [none, temperature, dirichlet_majority]` changes no training: every run
    is tested with all these calibrators and stands in the grid once at each level.

    `extends: basins.yaml` takes over another study and says only what differs: entries within
    entries are merged, anything else (a list, a number) is replaced. So one experiment at three
    scales has one list of grids, tables and claims. `studies.plan.places` says where paths lead.
    """

    example: ClassVar[str] = """\
name: sweep
title: Two deliveries by votes per item
configs: [configs/digits.yaml]
options: {trainer.max_epochs: 3}
predict: true
grids:
  main:
    data.delivery: [SoftLabels, Multipass]
    data.votes_per_item: [5, 10]
    dataset: {digits: {data: Digits}}
    seed_everything: [0, 1, 2]
paired: [seed_everything]
"""

    name: str = option(StudyName(), "names its folders")
    path: Path  # pyright: ignore[reportGeneralTypeIssues] - it has no default, as those above
    configs: list[str] = option(
        Names(), "files of options that all runs start from; of equal options the last counts"
    )
    grids: dict[str, dict[str, Any]] = option(Grids(), "its runs: every combination of levels")
    title: str = option(Text(), "what stands above its report", default="")
    options: dict[str, Any] = option(RunOptions(), "of all runs, on top of configs", default={})
    paired: list[str] = option(
        Names(), "factors that tie runs together, and that means are over", ["seed_everything"]
    )
    predict: bool = option(Flag(), "also keep every run's predictions, item by item", False)
    report: dict[str, Any] = option(ReportEntries(), "what is shown of them; see below", {})
    # further grids, whose runs depend on results: see `studies.plan.second_stage`
    selections: dict[str, Selection] = option(
        Selections(), "further grids, of what is chosen from a grid; see below", {}
    )

    @classmethod
    def load(cls, path: str | Path) -> "Study":
        """Read and check a study's file; what its options mean is found out with its runs."""
        path = Path(path)
        content = read_study_file(path)
        options = options_of(cls)
        needed = {name for name, described in options.items() if is_needed(described)}
        if not isinstance(content, dict) or not needed <= content.keys() <= options.keys():
            optional = ", ".join(sorted(options.keys() - needed | {"extends"}))
            odd = [name for name in content if name not in options] if content else []
            raise InputError(
                f"{path} must have the entries name, configs and grids, and may have {optional}"
                f"{hint(odd[0], options) if odd else ''}."
            )
        check_names_of_files(content, Checks(path))
        values = read_entry(cls, content, "", Reading(Checks(path)))
        check_configs(values["configs"], path)
        return cls(path=path, **values)

    @property
    def grid_names(self) -> list[str]:
        """Of all grids, then of all selections."""
        return [*self.grids, *self.selections]

    def levels(self, grid: str) -> Levels:
        """The levels of every factor of a grid or selection, in the order of the YAML."""
        return (
            self.selections[grid].levels
            if grid in self.selections
            else all_levels(self.grids[grid])
        )

    @cached_property
    def _cells(self) -> "Cells":
        from studies.plan.cells import Cells

        return Cells(self.path, self.configs, self.options)

    def runs(self) -> list[Run]:
        """Every distinct run of the grids, in the order of the YAML.

        Those of selections depend on these.
        """
        result: dict[str, Run] = {}
        for grid in self.grids:
            others, calibrate = split_off(self.grids[grid])
            for name, plain, levels in self._cells.expand(grid, others):
                config = self._calibrated(plain, calibrate)
                run = result.setdefault(name, Run(name, config, {}))
                run.merge_callbacks(config, self.path)
                run.factors[grid] = levels
                if calibrate:
                    run.calibrate[grid] = calibrate
        return list(result.values())

    def rerun_cells(self, selection: Selection, winner: Run) -> "Iterator[Cell]":
        """The runs that a winning cell is run again as: name, config, and levels of the selection's
        own factors.
        """
        levels = winner.factors[selection.grid]
        cell = {
            factor: {levels[factor]: labelled_levels(factor, all_)[levels[factor]]}
            for factor, all_ in split_off(self.grids[selection.grid])[0].items()
        }
        others, calibrate = split_off(selection.then)
        for name, config, factors in self._cells.expand(selection.name, cell | others):
            own = {factor: factors[factor] for factor in split_off(selection.levels)[0]}
            yield name, self._calibrated(config, calibrate), own

    def _calibrated(self, config: dict[str, Any], levels: list[str]) -> dict[str, Any]:
        """A run's config with the probe that the factor `calibrate` asks for: all calibrators of
        the study at once, so that a run of several grids has one such probe.
        """
        return with_calibrators(config, self._calibrators) if levels else config

    @cached_property
    def _calibrators(self) -> list[str]:
        places = {f"grids.{name}": grid for name, grid in self.grids.items()}
        places |= {f"selections.{name}.then": s.then for name, s in self.selections.items()}
        for place, factors in places.items():
            check_levels(split_off(factors)[1], f"{place}.{CALIBRATE}", Checks(self.path))
        return list(dict.fromkeys(level for f in places.values() for level in split_off(f)[1]))
