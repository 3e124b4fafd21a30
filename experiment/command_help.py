"""The short help of commands on one run; nothing is imported for it."""

DIGITS = "--config configs/digits.yaml"
# what each does, and how it is typed
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fit": (
        "train a run, or go on where it was interrupted; what is finished is not done again",
        (
            DIGITS,
            f"{DIGITS} --data.delivery Multipass --seed_everything 1",
            f"{DIGITS} --trainer.max_epochs 5 --model.network LeNet",
        ),
    ),
    "validate": ("compute a trained run's scores on its validation items", (DIGITS,)),
    "test": (
        "judge a trained run on its test items; writes results.json and figures",
        (
            DIGITS,
            "--config runs/NAME/config.yaml",
            f"{DIGITS} --calibrate temperature",
            f"{DIGITS} --preview true",
        ),
    ),
    "predict": (
        "write a trained run's predictions, item by item, to predictions.parquet",
        (DIGITS,),
    ),
    "describe": (
        "say what was understood of a dataset's votes, before anything is trained on them",
        (
            DIGITS,
            "--config configs/own_votes.yaml --data.votes my_votes.csv",
            f"{DIGITS} --figure worth.png",
        ),
    ),
    "score": (
        "judge anybody's predictions by a dataset's votes, without training; writes report.html",
        (
            "mine.csv --data CIFAR10H",
            "mine.parquet theirs.npy --config configs/chaosnli.yaml --split val",
            "runs/NAME/predictions.parquet --config runs/NAME/config.yaml",
        ),
    ),
}
OPTIONS = {
    "--config FILE": "a YAML of options, as in configs/; of several the last counts",
    "--data NAME": "the dataset: CIFAR10H, ChaosNLI, Digits, OwnVotes, ...",
    "--data.delivery NAME": "how votes reach the loss: SoftLabels, Multipass, ...",
    "--data.votes_per_item N": "train on so many votes of each item; null for all",
    "--data.batch_size N": "items per optimizer step",
    "--model.network NAME": "SimpleFFN, DeeperFFN, MLPHead, LeNet, ResNet18 or TimmModel",
    "--model.optimizer NAME": "a class of torch.optim; --model.optimizer.lr sets its rate",
    "--trainer.max_epochs N": "how long to train",
    "--trainer.default_root_dir DIR": "where runs are kept (runs)",
    "--seed_everything N": "of the split, the weights, the deliveries and the order",
    "--print_config": "print all options as they would be used, and end",
    "--help all": "every option with its type and default, which takes seconds",
}
# those of score, which trains nothing
SCORE_OPTIONS = {
    "--config FILE": OPTIONS["--config FILE"],
    "--data NAME": "the dataset: CIFAR10H, ChaosNLI, Digits, OwnVotes, ... and its options",
    "--data.root DIR": "where its files are",
    "--seed_everything N": "of the split, as in the run that predicted (0)",
    "--split NAME": "the items: test (default), val, train, all, or given: those of the files",
    "--item COLUMN": "the column of items' ids (item, index, or that of own votes)",
    "--report FILE": "the page to write (report.html)",
    "--help all": OPTIONS["--help all"],
}


def help_text(command: str) -> str:
    """What a command does, how it is typed, and the options that are used most.

    >>> print(help_text("validate").splitlines()[0])
    usage: cli.py validate --config FILE [--OPTION VALUE ...]
    """
    what, examples = COMMANDS[command]
    files, options = ("", OPTIONS) if command != "score" else ("PREDICTIONS ... ", SCORE_OPTIONS)
    width = max(map(len, options)) + 2
    return "\n".join(
        [
            f"usage: cli.py {command} {files}--config FILE [--OPTION VALUE ...]",
            "",
            f"{what[0].upper()}{what[1:]}.",
            "",
            *(f"  python cli.py {command} {typed}" for typed in examples),
            "",
            "options that are used most:",
            *(f"  {name:{width}}{meaning}" for name, meaning in options.items()),
        ]
    )
