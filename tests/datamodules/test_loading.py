"""Both loaders: the same batches in the same order, with or without workers, and resumption in
mid-epoch.
"""

import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset

from datamodules.loading import TensorLoader, WorkerLoader
from datamodules.order import BatchOrder

INPUTS = torch.arange(23.0).reshape(23, 1)


class OnDisk(Dataset[Tensor]):
    def __getitem__(self, item: int) -> Tensor:
        return INPUTS[item]


def make(kind: str):
    order = BatchOrder(torch.arange(23), 5, seed=1, shuffle=True)
    if kind == "tensor":
        return TensorLoader(lambda index, epoch: INPUTS[index], order)
    return WorkerLoader(OnDisk(), order, num_workers=int(kind.split()[0]))


def epoch_of(loader, epoch: int) -> list[list[int]]:
    # as Lightning does: the iterator is made first, the epoch set afterwards
    stream = iter(loader)
    (
        loader.sampler if isinstance(loader, TensorLoader) else loader.batch_sampler.sampler
    ).set_epoch(epoch)
    return [index.tolist() for _, index in stream]


@pytest.mark.parametrize("kind", ["tensor", "0 workers", "2 workers"])
def test_inputs_belong_to_their_index_and_the_order_is_the_same_everywhere(kind: str):
    loader = make(kind)
    assert len(loader) == 5
    for inputs, index in loader:
        assert torch.equal(inputs[:, 0], index.float())
    assert epoch_of(loader, 3) == epoch_of(make("tensor"), 3)


@pytest.mark.parametrize("kind", ["tensor", "0 workers", "2 workers"])
def test_resumes_after_what_was_handed_out_not_after_what_was_fetched_ahead(kind: str):
    loader = make(kind)
    stream = iter(loader)
    first = [next(stream)[1].tolist() for _ in range(2)]
    resumed = make(kind)
    resumed.load_state_dict(loader.state_dict())
    rest = [index.tolist() for _, index in resumed]
    assert first + rest == epoch_of(make("tensor"), 0)
    assert resumed.state_dict() == {"epoch": 0, "given": 5}


@pytest.mark.parametrize("kind", ["0 workers", "2 workers"])
def test_a_share_without_items_is_a_batch_of_no_items(kind: str):
    """21 items in batches of 5 over two ranks: the last one goes to the first rank."""
    order = BatchOrder(torch.arange(21), 5, seed=1, shuffle=True, rank=1, ranks=2)
    batches = list(WorkerLoader(OnDisk(), order, num_workers=int(kind.split()[0])))
    assert [len(index) for _, index in batches] == [2, 2, 2, 2, 0]
    assert batches[-1][0].shape == (0, 1)
    assert (batches[-1][0].dtype, batches[-1][1].dtype) == (torch.float32, torch.int64)
