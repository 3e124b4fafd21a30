"""`python cli.py study COMMAND STUDY.yaml`

plan      lists what there is to do, how and at what cost
run       does what is left of it
report    makes tables and figures of what is finished
evaluate  adds scores and probes that came later, from checkpoints, without training
"""

import argparse

from metrics.registry import scores_in_words
from studies.typed_commands import RUNS


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Read what stands after `cli.py study`."""
    parser = argparse.ArgumentParser(
        prog="cli.py study",
        description=__doc__,
        epilog=f"scores of every test, of which evaluate adds the missing:\n{scores_in_words()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("plan", "run", "report", "evaluate"))
    parser.add_argument("study", help="a YAML of configs/studies")
    parser.add_argument("--runs", default=str(RUNS), help="where runs are kept")
    parser.add_argument(
        "--copy", help="report: also write a small copy to this folder, to be kept in a repository"
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="plan: time some steps on this device and say what the study would take",
    )
    parser.add_argument(
        "--processes", type=int, help="processes side by side; by default one per core"
    )
    parser.add_argument("--launcher", choices=("local", "slurm"), default="local")
    slurm = parser.add_argument_group("slurm")
    slurm.add_argument("--partition")
    slurm.add_argument(
        "--max-parallel", type=int, default=256, help="tasks of the array that may run at once"
    )
    slurm.add_argument(
        "--hours",
        type=float,
        default=24.0,
        help="time limit of a task; one that reaches it is requeued",
    )
    slurm.add_argument("--cpus", type=int, default=1, help="cores of a process")
    slurm.add_argument("--gpus", type=int, default=0, help="GPUs of a task")
    slurm.add_argument(
        "--tasks", type=int, default=1, help="processes of a task, for runs with DDP"
    )
    return parser.parse_args(arguments)
