"""Commands that only explain themselves, or only find a mistake, answer without the imports of a
training; every typo is answered by the nearest name.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from cli import main
from experiment import command_help
from experiment.configuration import resolve
from studies import command_options
from tests.waiting import HANGS

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "lightning", "numpy", "pandas", "matplotlib", "scipy", "pyarrow")
STUDY = "name: x\nconfigs: [configs/digits.yaml]\ngrids: {main: {seed_everything: [0]}}\n"
# run as a user would, and say at the end what was imported
WATCHED = f"""
import atexit, runpy, sys
sys.path.insert(0, "")
atexit.register(lambda: print("imported:", *({HEAVY!r} & sys.modules.keys()), file=sys.stderr))
runpy.run_path("cli.py", run_name="__main__")
""".replace(repr(HEAVY), repr(set(HEAVY)))


def answer(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WATCHED, *words],
        capture_output=True,
        text=True,
        timeout=HANGS,
        cwd=ROOT,
    )


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["-h"], ["study", "--help"], ["corpus", "--help"]),
        *([command, "--help"] for command in command_help.COMMANDS),
        *(["study", command, "--help"] for command in command_options.COMMANDS),
        *(["corpus", command, "--help"] for command in ("build", "annotate")),
    ],
    ids=" ".join,
)
def test_help_imports_nothing_that_takes_long(words: list[str]):
    done = answer(*words)
    assert done.returncode == 0
    assert done.stderr.strip() == "imported:"
    assert done.stdout.startswith("usage: cli.py")
    assert "  python cli.py" in done.stdout, "it has no example"
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fot"], "fot is no command of cli.py, which has fit, .* mean fit"),
        (["study", "pln", "x"], "pln is no command of cli.py study, .* mean plan"),
        (["study", "plan", "x", "--calibrte"], "--calibrte is not an option .* mean --calibrate"),
        (["study", "plan", "x", "--calib"], "--calib is not an option of cli.py study"),
        (["study", "plan"], "required: STUDY.yaml"),
        (["score", "--data", "Digits"], "no file of predictions; name it before all options"),
        (["score", "absent.csv", "--data", "Digits"], "there is no absent.csv"),
        (["score", "cli.py", "--data", "Digits"], "cli.py is of no known kind"),
        (["score", "cli.py", "--split", "tst"], "--split: invalid choice"),
        (["corpus", "bild"], "bild is no command of cli.py corpus, .* mean build"),
        (["corpus", "annotate", "a", "b", "c", "--model", "mace"], "--model is not .* --models"),
    ],
)
def test_a_wrong_word_is_told_without_long_imports(words: list[str], sentence: str):
    done = answer(*words)
    assert done.returncode == 2
    line, imported = done.stderr.strip().splitlines()
    assert imported == "imported:"
    assert re.search(sentence, line), line


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (STUDY.replace("grids", "grid"), "did you mean grids?"),
        (STUDY + "reprt: {}\n", "did you mean report?"),
        (STUDY + "report: {tabels: []}\n", "report.tabels is not an option"),
        (
            STUDY + "report: {tables: [{name: a, colums: b}]}\n",
            "report.tables[0].colums is not an option",
        ),
        (STUDY + "report: {claims: [{idd: a}]}\n", "report.claims[0].idd is not an option"),
        (STUDY + "selections: {best: {form: main}}\n", "did you mean from?"),
    ],
)
def test_a_wrong_key_of_a_study_is_told_without_long_imports(
    text: str, sentence: str, tmp_path: Path
):
    (tmp_path / "study.yaml").write_text(text)
    done = answer("study", "plan", str(tmp_path / "study.yaml"))
    assert done.returncode == 2
    line, imported = done.stderr.strip().splitlines()
    assert imported == "imported:"
    assert sentence in line


def test_the_first_help_names_every_command(capsys: pytest.CaptureFixture):
    main(["--help"])
    text = capsys.readouterr().out
    commands = {"fit", "validate", "test", "predict", "describe", "score", "study", "corpus"}
    assert set(cli.COMMANDS) == commands
    assert commands <= {line.split()[0] for line in text.splitlines() if line.startswith("  ")}


@pytest.mark.parametrize(
    "words", [[], ["fit"], ["score"], ["study"], ["corpus"], ["corpus", "build"]]
)
def test_a_command_without_arguments_explains_itself(words: list[str], capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert capsys.readouterr().out.startswith(" ".join(["usage: cli.py", *words]))


def test_every_option_of_the_short_help_is_one():
    config = resolve(["--config", "configs/digits.yaml"])
    for words in command_help.OPTIONS:
        name = words.split()[0].removeprefix("--")
        if name in ("config", "print_config", "help"):
            continue
        part = config
        for place in name.split("."):
            part = part.get("init_args", part) if isinstance(part, dict) else part
            assert place in part, name
            part = part[place]


def test_the_long_help_lists_every_option(capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit) as end:
        main(["fit", "--help", "all"])
    assert end.value.code in (0, None)
    assert "--trainer.gradient_clip_val" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["study", "--help", "all"])
    assert "soft_nll" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "near"),
    [
        (["--trainer.max_epoch", "3"], "trainer.max_epoch is not .* trainer.max_epochs"),
        (["--data.batchsize", "3"], "data.batchsize is not .* data.batch_size"),
        (["--confg", "a.yaml"], "confg is not an option .* config"),
        (["--data.delivery", "Multpass"], "which is not one of .* mean Multipass"),
        (["--trainer.callbacks+", "HessianSpectrm"], "not one of .* mean HessianSpectrum"),
    ],
)
def test_a_mistyped_option_is_answered_by_the_nearest_name(
    options: list[str], near: str, capsys: pytest.CaptureFixture
):
    with pytest.raises(SystemExit) as end:
        main(["fit", "--config", "configs/digits.yaml", *options])
    assert end.value.code == 2
    assert re.search(near, capsys.readouterr().err)


def test_votes_are_read_without_lightning():
    code = "import sys, datamodules.votes, corpora; assert 'lightning' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANGS, cwd=ROOT)
