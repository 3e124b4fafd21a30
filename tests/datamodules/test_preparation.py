"""Standardisation, crops and flips of whole batches, against torchvision item by item."""

import numpy as np
import torch
from scipy import stats
from torchvision.transforms import functional as vision

from datamodules.preparation import CropFlip, Standardize

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
IMAGES = torch.from_numpy(
    np.random.default_rng(0).integers(0, 256, size=(40, 3, 32, 32), dtype=np.uint8)
)


def test_standardize_equals_torchvision():
    index = torch.tensor([7, 0, 7])
    expected = torch.stack(
        [vision.normalize(IMAGES[i] / 255, list(MEAN), list(STD)) for i in index]
    )
    torch.testing.assert_close(Standardize(IMAGES, MEAN, STD, 255)(index, epoch=0), expected)


def test_crops_and_flips_equal_torchvision_item_by_item():
    augment = CropFlip(IMAGES, MEAN, STD, 255, seed=3)
    index = torch.tensor([5, 1, 39, 8, 20, 21, 22])
    batch = augment(index, epoch=4)
    flips, rows, columns = augment._draw(4)
    for item, prepared in zip(index, batch, strict=True):
        image = vision.pad(IMAGES[item], [4, 4, 4, 4])
        image = vision.hflip(image) if flips[item] else image
        image = vision.crop(image, int(rows[item]), int(columns[item]), 32, 32)
        torch.testing.assert_close(prepared, vision.normalize(image / 255, list(MEAN), list(STD)))


def test_augmentation_is_a_function_of_seed_epoch_and_item():
    whole = CropFlip(IMAGES, MEAN, STD, 255, seed=3)(torch.arange(40), epoch=2)
    piecewise = CropFlip(IMAGES, MEAN, STD, 255, seed=3)
    for index in torch.randperm(40, generator=torch.Generator().manual_seed(0)).split(7):
        assert torch.equal(piecewise(index, epoch=2), whole[index])
    assert not torch.equal(
        CropFlip(IMAGES, MEAN, STD, 255, seed=3)(torch.arange(40), epoch=3), whole
    )
    assert not torch.equal(
        CropFlip(IMAGES, MEAN, STD, 255, seed=4)(torch.arange(40), epoch=2), whole
    )


def test_offsets_and_flips_are_uniform_and_independent():
    augment = CropFlip(torch.zeros(2000, 1, 8, 8, dtype=torch.uint8), [0.5], [0.5], 255, seed=0)
    flips, rows, columns = augment._draw(0)
    for draws, values in ((flips, 2), (rows, 9), (columns, 9)):
        assert stats.chisquare(np.bincount(draws.numpy(), minlength=values)).pvalue > 1e-3
    table = np.zeros((9, 9))
    np.add.at(table, (rows.numpy(), columns.numpy()), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_stored_images_are_left_as_they_are():
    before = IMAGES.clone()
    CropFlip(IMAGES, MEAN, STD, 255, seed=0)(torch.arange(10), epoch=0)
    assert torch.equal(IMAGES, before)
