"""What stands after `cli.py study`, read and explained; nothing is imported for that."""

import argparse
import sys

from core.terminal import CommandParser, check_command, wants_help
from studies.typed_commands import RUNS

COMMANDS = {
    "plan": "list what there is to do, how and at what cost; nothing is trained",
    "run": "do what is left of it; given again, it goes on from wherever it was",
    "report": "make tables and figures of what is finished",
    "evaluate": "add scores and probes that came later, from checkpoints, without training",
}
PROG, STUDY = "cli.py study", "configs/studies/digits.yaml"
EXAMPLES = {
    "plan": ("", "--calibrate"),
    "run": ("", "--processes 4", "--launcher slurm --partition gpu --hours 8"),
    "report": ("", "--copy docs/results/digits"),
    "evaluate": ("",),
}
EVERY, SLURM = tuple(COMMANDS), "with --launcher slurm"
# the commands that an option is for, its heading in the help, and what argparse is told
OPTIONS: dict[str, tuple[tuple[str, ...], str, dict]] = {
    "--runs": (EVERY, "", {"default": str(RUNS), "help": "where runs are kept (%(default)s)"}),
    "--processes": (
        ("plan", "run"),
        "",
        {"type": int, "help": "processes side by side; by default one per core"},
    ),
    "--calibrate": (
        ("plan",),
        "",
        {
            "action": "store_true",
            "help": "time some steps on this device and say what the study would take",
        },
    ),
    "--copy": (
        ("report",),
        "",
        {"help": "also write a small copy to this folder, to be kept in a repository"},
    ),
    "--launcher": (("run",), "", {"choices": ("local", "slurm"), "default": "local"}),
    "--partition": (("run",), SLURM, {}),
    "--max-parallel": (
        ("run",),
        SLURM,
        {"type": int, "default": 256, "help": "tasks of the array that may run at once"},
    ),
    "--hours": (
        ("run",),
        SLURM,
        {
            "type": float,
            "default": 24.0,
            "help": "time limit of a task; one that reaches it is requeued",
        },
    ),
    "--cpus": (("run",), SLURM, {"type": int, "default": 1, "help": "cores of a process"}),
    "--gpus": (
        ("run",),
        SLURM,
        {"type": int, "default": 0, "help": "GPUs of a task; a pack has one"},
    ),
    "--tasks": (
        ("run",),
        SLURM,
        {"type": int, "default": 1, "help": "processes of a task, for runs with DDP"},
    ),
}


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Read what stands after `cli.py study`; where help is asked for, print it and end."""
    if wants_help(arguments):
        print(help_text(arguments), end="")
        sys.exit(0 if arguments else 2)
    if not arguments[0].startswith("-"):
        check_command(arguments[0], list(COMMANDS), PROG)
    return _parser(EVERY, PROG).parse_args(arguments)


def help_text(arguments: list[str]) -> str:
    """The commands of a study, or one of them with its own options; with `all`, also what takes
    longer to find out.
    """
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    if command:
        typed = (f"  python {PROG} {command} {STUDY} {more}" for more in EXAMPLES[command])
        examples = "\n".join(line.rstrip() for line in typed)
        about = f"{COMMANDS[command].capitalize()}.\n\n{examples}"
        result = _parser((command,), f"{PROG} {command}", about).format_help()
    else:
        rows = (f"  {name:10}{what}" for name, what in COMMANDS.items())
        result = (
            f"usage: {PROG} COMMAND STUDY.yaml [options]\n\n"
            "Many runs as one thing, described by a YAML such as those of configs/studies;\n"
            "docs/study-reference.md lists all that it may say.\n\n"
            + "\n".join(rows)
            + f"\n\n  python {PROG} plan {STUDY}\n\n"
            f"{PROG} COMMAND --help explains one; {PROG} --help all lists the scores of every "
            "test.\n"
        )
    return result + (_scores() if "all" in arguments else "")


def _scores() -> str:
    from metrics.registry import scores_in_words

    return f"\nscores of every test, of which evaluate adds the missing:\n{scores_in_words()}\n"


def _parser(commands: tuple[str, ...], prog: str, description: str = "") -> CommandParser:
    """Of one command with its own options, for help; of several, with those of all."""
    parser = CommandParser(prog, description)
    if len(commands) > 1:
        parser.add_argument("command", choices=commands)
    parser.add_argument("study", help="a YAML of configs/studies", metavar="STUDY.yaml")
    slurm = parser.add_argument_group(SLURM)
    for name, (whose, heading, about) in OPTIONS.items():
        if not set(commands).isdisjoint(whose):
            (slurm if heading else parser).add_argument(name, **about)
    return parser
