"""Packs on a device that is not the host. There is no GPU here: `meta`, which has shapes and no
numbers, stands for one, and refuses whatever would have to wait for its numbers.
"""

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from core.errors import InputError
from datamodules import Mixup, Multipass, SoftLabels, StochasticLabelSampling
from lightning_modules.networks import DeeperFFN, LeNet, MLPHead, ResNet18, SimpleFFN, TimmModel
from lightning_modules.packed import pack_batches, pack_evaluation
from lightning_modules.packed.pack_device import device_here, device_of
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier
from lightning_modules.packed.vmapped_network import VmappedNetwork
from tests.lightning_modules.packed.test_packed import adam, pack_of, sgd
from tests.lightning_modules.packed.test_vmapped_network import OwnNetwork

META = torch.device("meta")
NETWORKS = {
    "simple": SimpleFFN,
    "deeper": DeeperFFN,
    "dropout": partial(MLPHead, hidden=32, dropout=0.3),
    "LeNet": LeNet,
    "head with norm": partial(MLPHead, hidden=32, norm="batch"),
    "LeNet with norm": partial(LeNet, norm="batch"),
    "ResNet-18": partial(ResNet18, width=2),
    "timm": partial(TimmModel, name="test_resnet"),
    "own": OwnNetwork,
}
ADAM = [
    (0, SoftLabels(), adam(1e-3)),
    (0, Mixup(Multipass()), adam(1e-2, 1e-4)),
    (3, StochasticLabelSampling(), adam(1e-3)),
]
SGD = [(0, Mixup(), sgd(0.1)), (3, Multipass(), sgd(0.03))]


@pytest.fixture(scope="module", autouse=True)
def fused_sgd_of_shapes():
    """torch knows what fused Adam does to shapes (nothing), and not that fused SGD does the
    same.
    """
    library = torch.library.Library("aten", "IMPL", "Meta")
    library.impl("_fused_sgd_", lambda *args, **options: None)
    yield
    library._destroy()


class OneDevice(TorchFunctionMode):
    """Refuses a function of tensors on `meta` and others that have more than one number: torch
    itself lets an index come from elsewhere, and on a GPU would wait for it. Counts what is moved
    to `meta`.
    """

    moved = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        flat = torch.utils._pytree.tree_leaves((args, kwargs))
        tensors = [value for value in flat if isinstance(value, Tensor)]
        places = {tensor.device.type for tensor in tensors if tensor.ndim}
        assert len(places) < 2 or name in MOVES, f"{name} has tensors of {places}"
        if name in READS:
            assert not any(tensor.is_meta for tensor in tensors), f"{name} waits for the device"
        result = func(*args, **(kwargs or {}))
        self.moved += name == "to" and result.is_meta and not tensors[0].is_meta
        return result


MOVES = ("to", "copy_")
READS = ("item", "numpy", "cpu", "tolist", "__bool__", "__int__", "__float__", "nonzero")


def pack_on_meta(specs, network) -> PackedClassifier:
    return PackedClassifier(pack_of(specs, 2, network), META)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
@pytest.mark.parametrize("specs", [ADAM, SGD], ids=["Adam", "SGD"])
def test_no_step_of_an_epoch_waits_for_the_device(network, specs):
    pack = pack_on_meta(specs, network)
    assert isinstance(pack.network, VmappedNetwork)
    with OneDevice():
        losses = pack.train_epoch()
    assert losses.is_meta
    assert losses.shape == (len(specs),)
    assert all(tensor.is_meta for tensor in [*pack.network.tensors().values(), *pack.moments])


def test_crops_are_made_on_the_device():
    members = pack_of(ADAM[:2], 2, LeNet)
    for data in {id(member.data): member.data for member in members}.values():
        data.corpus.augment = True
    pack = PackedClassifier(members, META)
    with OneDevice():
        assert pack.train_epoch().is_meta


def test_what_is_moved_to_the_device_is_moved_once_an_epoch(monkeypatch: pytest.MonkeyPatch):
    moved = set()
    for at_once in (1, 64):  # batches that are prepared together
        monkeypatch.setattr(pack_batches, "CHUNK", at_once)
        pack = pack_on_meta(ADAM, SimpleFFN)
        with OneDevice() as device:
            pack.train_epoch()
        moved.add(device.moved)
    # the targets of three spans, the order of two datamodules, and the shares of mixup
    assert moved == {3 + 2 + 1}


def test_scores_are_computed_on_the_device_and_read_by_one_function(
    monkeypatch: pytest.MonkeyPatch,
):
    read = []

    def instead(*tensors: Tensor) -> list[Tensor]:
        assert all(tensor.is_meta for tensor in tensors)
        read.append(len(tensors))
        return [torch.ones(tensor.shape, dtype=tensor.dtype) for tensor in tensors]

    monkeypatch.setattr(pack_evaluation, "read_from_device", instead)
    pack = pack_on_meta(ADAM, LeNet)
    with OneDevice():
        rows = pack._evaluate()
    assert [row["val/kl"] for row in rows] == [1.0] * 3
    assert len(read) >= len(pack.spans)


def test_a_state_that_was_read_goes_on_elsewhere():
    """What is saved lies on the host, and a pack on any device takes it."""
    members: list[Member] = pack_of(ADAM, 2, OwnNetwork)
    states = []
    PackedClassifier(members).fit(lambda pack: states.append(pack.state_dict()))
    pack = pack_on_meta(ADAM, OwnNetwork)
    pack.load_state_dict(states[0])
    assert pack.epoch == 1
    assert all(moment.is_meta for moment in pack.moments)
    assert pack.train_epoch().is_meta


@pytest.mark.parametrize(
    ("accelerator", "gpus", "device"),
    [
        (None, 0, "cpu"),
        ("auto", 0, "cpu"),
        ("auto", 1, "cuda"),
        (None, 4, "cuda"),
        ("cpu", 4, "cpu"),
        ("gpu", 1, "cuda"),
        ("cuda", 1, "cuda"),
    ],
)
def test_a_pack_trains_where_lightning_would(
    accelerator, gpus: int, device: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert device_of({"accelerator": accelerator}, gpus) == device
    assert device_here({"accelerator": accelerator}).type == device


def test_a_gpu_that_is_not_there_is_told():
    if torch.cuda.device_count():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match="is gpu, and this process finds no GPU"):
        device_here({"accelerator": "gpu"})
