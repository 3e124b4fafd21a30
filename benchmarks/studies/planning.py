"""Planning a study of 10,000 runs, wanted in under 5 s.

The peer is what a study would cost without planning each factor once: parsing every run's options,
as a shell loop of LightningCLI does, its start and imports not counted; measured on a sample and
extrapolated.

    python -m benchmarks planning        about 10 seconds
"""

from collections.abc import Iterator
from time import process_time

from benchmarks.row import Row, main
from experiment.configuration import resolve
from studies.commands import jobs_of
from studies.plan.study import Study

SAMPLE = 20


def rows() -> Iterator[Row]:
    """Plan and report large studies."""
    resolve(["--config", "configs/digits.yaml"])  # builds the parser, as any command does once
    factors = {
        "data.delivery": ["SoftLabels", "MajorityVote", "Multipass", "StochasticLabelSampling"],
        "data.votes_per_item": [5, 10, 25, 50, None],
        "model.optimizer.init_args.lr": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "model.optimizer.init_args.weight_decay": [0.0, 1e-4],
        "seed_everything": list(range(50)),
    }
    start = process_time()
    runs = study(factors).runs()
    jobs_of(runs, processes=2)
    planning = process_time() - start
    start = process_time()
    for seed in range(SAMPLE):
        resolve(["--config", "configs/digits.yaml", "--seed_everything", str(seed)])
    peer = (process_time() - start) / SAMPLE * len(runs)
    what, note = f"planning {len(runs):,} runs", f"extrapolated from {SAMPLE}"
    each = "parsing each run's options by LightningCLI"
    yield Row(what, "at most 5 s of CPU", planning, 5.0, 1.0, unit="CPU s")
    yield Row(what, each, planning, peer, None, note, "CPU s")


def study(factors: dict) -> Study:
    """A study with these factors and the digits' report."""
    template = Study.load("configs/studies/digits.yaml")
    return Study(
        name="large",
        path=template.path,
        configs=template.configs,
        grids={"main": factors},
        report=template.report,
    )


if __name__ == "__main__":
    main(rows)
