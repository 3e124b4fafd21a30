"""What a run's folder says of its training and its data, made to deceive: such a run is not
finished, or is refused in one sentence.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from callbacks.records.known_data import check_at_hand, read_fingerprint
from callbacks.results import has_ended, read_training
from tests.hostile.deceiving import ANYTHING, DEEP
from tests.hostile.outcomes import outcome
from tests.hostile.test_hostile_arrays import refused

TRAINING = {
    "ended": "epochs",
    "epochs": 3,
    "planned_epochs": 3,
    "steps": 9,
    "planned_steps": None,
    "reason": "",
}
STOPPING = {"monitor": "val/loss", "patience": 1, "min_delta": 0.5, "mode": "min"}
TRAINER = {
    "max_epochs": 5,
    "callbacks": [
        {"class_path": "lightning.pytorch.callbacks.EarlyStopping", "init_args": STOPPING}
    ],
}
HISTORY = [{"epoch": epoch, "train/loss": 1.0, "val/loss": 1 - epoch / 10} for epoch in range(2)]
FINGERPRINT = {
    "options": {"seed": 0},
    "data": {
        "votes": {"digest": "ab", "source": "votes.csv"},
        "items": {"digest": "cd", "size": 3},
    },
}


def look(folder: Path) -> None:
    """All that is asked of a run's folder, and told of it."""
    record = read_training(folder)
    if record is not None:
        record.in_words()
    has_ended(folder)


@pytest.mark.parametrize("key", TRAINING)
def test_a_record_of_training(key: str, tmp_path: Path):
    (tmp_path / "training.json").write_text(json.dumps(TRAINING))
    assert read_training(tmp_path) is not None
    for value in ANYTHING.values():
        (tmp_path / "training.json").write_text(json.dumps({**TRAINING, key: value}))
        assert outcome(lambda: look(tmp_path)) == "result"


def write_earlier(folder: Path, trainer: Any = TRAINER, history: Any = HISTORY) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump({"trainer": trainer}))
    (folder / "history.json").write_text(json.dumps(history))


def test_evidence_of_a_run_of_an_earlier_version(tmp_path: Path):
    write_earlier(tmp_path)
    assert read_training(tmp_path) is not None
    (callback,) = TRAINER["callbacks"]
    # YAML holds no half letters
    values = [
        value
        for kind, value in ANYTHING.items()
        if "half" not in kind and kind != "a command to a terminal"
    ]
    trainers = [
        {**TRAINER, key: value} for key in (*TRAINER, "max_steps", "max_time") for value in values
    ]
    trainers += [
        {**TRAINER, "callbacks": [{**callback, key: value}]} for key in callback for value in values
    ]
    trainers += [
        {**TRAINER, "callbacks": [{**callback, "init_args": {**STOPPING, key: value}}]}
        for key in STOPPING
        for value in values
    ]
    for trainer in [*values, *trainers]:
        write_earlier(tmp_path, trainer)
        assert outcome(lambda: look(tmp_path)) == "result", trainer
    for key in (*HISTORY[0], "more"):
        for value in ANYTHING.values():
            write_earlier(tmp_path, history=[HISTORY[0], {**HISTORY[1], key: value}])
            assert outcome(lambda: look(tmp_path)) == "result", (key, value)
    for value in ANYTHING.values():
        (tmp_path / "failed.json").write_text(json.dumps({"reason": value}))
        assert outcome(lambda: look(tmp_path)) == "result", value


def test_a_fingerprint(tmp_path: Path):
    path, now = (
        tmp_path / "fingerprint.json",
        {
            "votes": {"digest": "ab", "source": "votes.csv"},
            "items": {"digest": "ef", "size": 4, "source": "e.npy"},
        },
    )
    changes = [{**FINGERPRINT, key: value} for key in FINGERPRINT for value in ANYTHING.values()]
    for part, entry in FINGERPRINT["data"].items():
        changes += [
            {**FINGERPRINT, "data": {**FINGERPRINT["data"], part: value}}
            for value in ANYTHING.values()
        ]
        changes += [
            {**FINGERPRINT, "data": {**FINGERPRINT["data"], part: {**entry, key: value}}}
            for key in ("digest", "source", "size", "time")
            for value in ANYTHING.values()
        ]
    for content in [
        *map(json.dumps, [FINGERPRINT, *changes, *ANYTHING.values()]),
        *map(bytes.decode, DEEP.values()),
    ]:
        path.write_text(content)
        for read in (read_fingerprint, lambda folder: check_at_hand(folder, now)):
            outcome(lambda read=read: read(tmp_path), "fingerprint.json", tmp_path.name)


def test_no_command_of_somebody_else_is_advised(tmp_path: Path):
    """Where only a file's time differs, the sentence says how to give it its time back."""
    now = {"items": {"digest": "cd", "size": 3, "time": "2026-01-02T03:04:05Z", "source": "e.npy"}}
    messages = {}
    for time in ("2025-01-02T03:04:05Z", "1; rm -r ~ #", "$(reboot)"):
        (tmp_path / "fingerprint.json").write_text(
            json.dumps(
                {"options": {}, "data": {"items": {"digest": "cd", "size": 3, "time": time}}}
            )
        )
        messages[time] = refused(lambda: check_at_hand(tmp_path, now), tmp_path.name)
    assert "touch -d 2025-01-02T03:04:05Z e.npy" in messages.pop("2025-01-02T03:04:05Z")
    assert not any("touch" in sentence for sentence in messages.values())
