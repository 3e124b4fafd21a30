"""Which runs train together, and why the others do not."""

import itertools
import json
from pathlib import Path

import pytest
from torch import Tensor, nn

from callbacks.results import read_failure, read_results
from experiment.configuration import resolve
from experiment.identity import run_name
from lightning_modules import networks
from lightning_modules.packed.pack_member import Member
from studies.launch.pack_job import run_pack
from studies.launch.pack_members import build_members, early_stopping
from studies.plan import cost
from studies.plan.pack_form import largest_pack
from studies.plan.packing import jobs_of, why_alone, without_epochs
from studies.plan.study import Run

DIGITS = ["--config", str(Path(__file__).parents[3] / "configs/digits.yaml")]
EARLY = ["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor", "val/soft_nll"]


def run(*options: str) -> Run:
    config = resolve([*DIGITS, *options])
    return Run(run_name(config), config, {})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], None),
        (["--model.network", "MLPHead"], None),
        (["--model.scheduler", "CosineToEnd"], None),
        (EARLY, None),
        (
            [
                "--trainer.callbacks+=TrainingDynamics",
                *EARLY,
                "--trainer.callbacks+=GradientVariance",
            ],
            None,
        ),
        (["--data.votes_per_item", "5"], None),
        (["--model.network", "LeNet"], None),
        (["--model.network", "ResNet18"], "on a CPU ResNet18 is faster alone: "),
        (["--model.network", "ResNet18", "--model.network.width", "2"], None),
        (["--model.optimizer", "RMSprop"], "RMSprop with these options has no packed form"),
        (["--model.optimizer.amsgrad", "true"], "Adam with these options has no packed form"),
        (
            ["--model.scheduler", "StepLR", "--model.scheduler.step_size", "3"],
            "StepLR has no packed form",
        ),
        (["--trainer.gradient_clip_val", "1.0"], "trainer.gradient_clip_val is set"),
        (["--trainer.precision", "bf16-mixed"], "trainer.precision is set"),
        (["--trainer.accelerator", "tpu"], "trainer.accelerator is set"),
        (["--trainer.devices", "2"], "trainer.devices is set"),
        (["--trainer.strategy", "ddp"], "trainer.strategy is set"),
        (["--trainer.max_time", "00:01:00:00"], "trainer.max_time is set"),
        (["--model.compile", "true"], "model.compile is set"),
        (
            [
                "--trainer.callbacks+=StochasticWeightAveraging",
                "--trainer.callbacks.swa_lrs",
                "0.1",
            ],
            "StochasticWeightAveraging may look",
        ),
        ([*EARLY, "--trainer.callbacks.mode", "min"], None),
        ([*EARLY, "--trainer.callbacks.mode", "max"], "the option mode of the callback EarlyS"),
        ([*EARLY, "--trainer.callbacks.stopping_threshold", "0.1"], "the option stopping_thresh"),
        ([*EARLY[:-1], "val/accuracy"], "the callback EarlyStopping may look into training"),
        ([*EARLY, *EARLY[:-1], "val/hard_nll"], "more than one EarlyStopping is set"),
    ],
)
def test_each_run_says_why_it_cannot_be_packed(options: list[str], reason: str | None):
    answer = why_alone(run(*options).config)
    assert answer is None if reason is None else reason in (answer or "")


class LeNetOfAUser(networks.LeNet):
    """It inherits, and is no plain chain."""

    def features(self, inputs: Tensor) -> Tensor:
        return super().features(inputs) * 2


class Recurrent(networks.Network):
    """What torch.func cannot map."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int):
        super().__init__()
        self.rows, self.head = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        return self.rows(inputs[:, 0])[0][:, -1]


def of_network(kind: type) -> Run:
    one = run()
    one.config["model"]["network"] = {"class_path": f"{__name__}.{kind.__name__}"}
    return one


def test_a_network_from_elsewhere_is_mapped_also_where_it_inherits_from_one_of_ours():
    (job,) = jobs_of([of_network(LeNetOfAUser)], processes=1)
    assert (job.packed, job.why) == (True, "members of equal shape, mapped by torch.func")


def test_a_network_that_cannot_be_mapped_goes_alone_on_every_device():
    for gpus in (0, 1):
        (job,) = jobs_of([of_network(Recurrent)], processes=1, gpus=gpus)
        assert not job.packed
        assert "torch.func.vmap cannot map Recurrent: Batching rule not implemented" in job.why


@pytest.mark.parametrize(
    ("accelerator", "gpus", "device"),
    [("auto", 0, "cpu"), ("auto", 2, "cuda"), ("cpu", 2, "cpu"), ("gpu", 0, "cuda")],
)
def test_jobs_are_on_the_device_that_lightning_would_choose(accelerator, gpus: int, device: str):
    runs = [
        run("--trainer.accelerator", accelerator, *network, "--seed_everything", str(seed))
        for network in ([], ["--model.optimizer", "RMSprop"])
        for seed in range(4)
    ]
    jobs = jobs_of(runs, processes=3, gpus=gpus)
    assert {job.device for job in jobs} == {device}
    # a pack to each GPU, or to each process
    packs = [job for job in jobs if job.packed]
    assert len(packs) == {"cpu": 3, "cuda": max(1, gpus)}[device]
    mapped = "members of equal shape, mapped by torch.func"
    assert {job.why for job in packs} == {
        "cpu": {"members of equal shape"},
        "cuda": {mapped},
    }[device]


def test_on_gpus_any_network_is_packed_as_far_as_memory_goes():
    runs = [
        run("--model.network", "ResNet18", "--seed_everything", str(s), "--data.batch_size", "512")
        for s in range(40)
    ]
    packs = jobs_of(runs, processes=1, gpus=1)
    assert all(job.packed for job in packs)
    largest = max(len(job.runs) for job in packs)
    config = runs[0].config
    assert largest <= largest_pack(config, "cuda") < 40
    assert sum(len(job.runs) for job in packs) == 40


def test_members_on_cpu_and_gpu_are_apart():
    runs = [run("--trainer.accelerator", kind) for kind in ("cpu", "gpu")]
    assert [job.device for job in jobs_of(runs, processes=1, gpus=1)] == ["cpu", "cuda"]


class Adam:
    """A name that packs know. No Optimizer, or the word Adam would mean two classes elsewhere."""


def test_an_optimizer_from_elsewhere_of_the_same_name_is_not_packed():
    config = run().config
    assert why_alone(config) is None
    config["model"]["optimizer"]["class_path"] = "tests.studies.plan.test_packing.Adam"
    assert "Adam with these options has no packed form" in (why_alone(config) or "")


def test_a_packs_stopping_rule_is_found_among_probes():
    rule = early_stopping(
        run(
            "--trainer.callbacks+=TrainingDynamics", *EARLY, "--trainer.callbacks.patience", "7"
        ).config
    )
    assert rule
    assert rule.patience == 7
    assert early_stopping(run("--trainer.callbacks+=TrainingDynamics").config) is None


def test_packs_hold_equal_shapes_and_keep_seeds_together():
    runs = [
        run("--seed_everything", str(seed), "--data.delivery", name)
        for name in ("SoftLabels", "Multipass")
        for seed in range(4)
    ]
    runs += [
        run("--model.network", "DeeperFFN"),
        run("--model.network", "ResNet18"),
        run("--data.batch_size", "32"),
    ]
    jobs = jobs_of(runs, processes=2)
    assert sorted(name for job in jobs for name in (r.name for r in job.runs)) == sorted(
        r.name for r in runs
    )
    packs = [job for job in jobs if job.packed]
    # two cores share the eight of one shape
    assert sorted(len(job.runs) for job in packs) == [
        1,
        1,
        4,
        4,
    ]
    for job in packs:
        if len(job.runs) == 4:
            assert sorted(r.config["seed_everything"] for r in job.runs) in (
                [0, 0, 1, 1],
                [2, 2, 3, 3],
            )
    (why,) = [job.why for job in jobs if not job.packed]
    assert why.startswith("on a CPU ResNet18 is faster alone: ")


def test_runs_that_differ_in_their_length_alone_stay_in_one_pack():
    runs = [
        run("--seed_everything", str(seed), "--trainer.max_epochs", str(epochs))
        for epochs in (2, 3, 4)
        for seed in range(3)
    ]
    jobs = jobs_of(runs, processes=2)
    assert sorted(len(job.runs) for job in jobs) == [3, 6]
    assert all(
        len({r.config["seed_everything"] for r in job.runs}) == len(job.runs) / 3 for job in jobs
    )


def test_an_exhaustive_grid_packs_by_batch_size_alone_and_reads_three_lengths_off_one_member(
    tmp_path: Path,
):
    plateau = json.dumps(
        {"class_path": "torch.optim.lr_scheduler.ReduceLROnPlateau", "init_args": {"factor": 0.5}}
    )
    stop = [
        "--trainer.callbacks+=EarlyStopping",
        "--trainer.callbacks.monitor",
        "val/loss",
        "--trainer.callbacks+=EpochScores",
    ]
    deliveries = (
        ["--data.delivery", "SoftLabels"],
        ["--data.delivery", "MajorityVote", "--model.monitor", "val/hard_nll"],
    )
    factors = [
        deliveries,
        [
            ["--model.optimizer.lr", lr, "--model.optimizer.weight_decay", decay]
            for lr, decay in (("1e-3", "0"), ("1e-4", "1e-4"))
        ],
        [[], ["--model.scheduler", plateau]],
        [["--data.batch_size", size] for size in ("8", "32")],
        [["--trainer.max_epochs", epochs] for epochs in ("10", "15", "20")],
    ]
    runs = [
        run(*stop, *(word for words in cell for word in words))
        for cell in itertools.product(*factors)
    ]
    jobs = jobs_of(runs, processes=1)
    assert [len(job.runs) for job in jobs] == [24, 24]
    for job in jobs:
        assert len({r.config["data"]["init_args"]["batch_size"] for r in job.runs}) == 1
        members, owners = build_members(job.runs, tmp_path)
        assert len(members) == 8
        assert {len(owned) for owned in owners} == {3}
        assert {member.stops for member in members} == {(10, 15, 20)}
        assert (
            sorted(member.classifier.monitor for member in members)
            == ["val/hard_nll"] * 4 + ["val/soft_nll"] * 4
        )
        assert {member.early_stopping.monitor for member in members if member.early_stopping} == {
            "val/loss"
        }
        followers = [follower for member in members for follower in member.followers.values()]
        assert [follower.splits for follower in followers] == [("train", "test")] * len(members)


def test_a_run_that_ended_before_its_longer_twin_diverged_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = Member.end_epoch

    def diverging(self, scores, weights):
        whole(
            self,
            {**scores, "train/loss": float("nan")} if len(self.history) == 2 else scores,
            weights,
        )

    monkeypatch.setattr(Member, "end_epoch", diverging)
    short, long = run("--trainer.max_epochs", "2"), run("--trainer.max_epochs", "4")
    assert list(
        run_pack([short, long], tmp_path, tmp_path / "pack.pt", False, lambda share: None)
    ) == [long.name]
    assert read_results(short.folder(tmp_path))
    assert read_results(long.folder(tmp_path)) is None
    assert "epoch 2" in (read_failure(long.folder(tmp_path)) or "")


def test_the_cut_and_the_names_depend_on_the_study_alone():
    runs = [run("--seed_everything", str(seed)) for seed in range(4)]
    assert [job.name for job in jobs_of(runs, 2)] == [job.name for job in jobs_of(runs, 2)]


def test_epochs_are_prefixes_only_where_nothing_depends_on_the_total():
    short, long = run("--trainer.max_epochs", "3"), run("--trainer.max_epochs", "9")
    assert without_epochs(short.config) == without_epochs(long.config)
    assert without_epochs(
        run("--trainer.max_epochs", "3", "--seed_everything", "1").config
    ) != without_epochs(long.config)
    assert without_epochs(run("--model.scheduler", "CosineToEnd").config) is None


def test_plan_says_where_bfloat16_pays(monkeypatch: pytest.MonkeyPatch):
    """For what it was measured of, where the CPU has it, and to nobody who has set it."""
    large, small = run("--model.network", "ResNet18"), run("--model.network", "LeNet")
    chosen = run("--model.network", "ResNet18", "--trainer.precision", "bf16-mixed")
    jobs = jobs_of([large, small, chosen], processes=1)
    monkeypatch.setattr(cost, "computes_bfloat16", lambda: True)
    assert cost.where_bfloat16_pays(jobs).startswith(" 1 of them train ResNet18, and this CPU")
    assert cost.where_bfloat16_pays(jobs_of([small, chosen], processes=1)) == ""
    monkeypatch.setattr(cost, "computes_bfloat16", lambda: False)
    assert cost.where_bfloat16_pays(jobs) == ""
