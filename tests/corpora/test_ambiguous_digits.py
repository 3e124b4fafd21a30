"""Interpolated digits: made of two different digits each, labelled by a classifier, chosen evenly,
and the same for the same seed to the last bit.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import entr

from core.errors import InputError
from corpora import ambiguous_digits
from corpora.ambiguous_digits import evenly, interpolated_source, pairs, reserve
from corpora.latent_digits import between, trained_vae
from corpora.options import Interpolation
from corpora.short_training import predicted, trained
from corpora.sources import Source, mnist_source
from lightning_modules.networks import LeNet

TINY = Interpolation(digits=300, dimensions=3, epochs=2, classifier_epochs=1, images=60)


@pytest.fixture
def mnist(small_mnist: Path) -> Source:
    return mnist_source(str(small_mnist))


def test_the_same_seed_makes_the_same_digits_and_another_seed_others(mnist: Source, tmp_path: Path):
    torch.manual_seed(99)  # what was drawn before does not matter
    state = torch.get_rng_state()
    one, ends = interpolated_source(mnist, TINY, 0, tmp_path / "one", "key")
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    again, ends_again = interpolated_source(mnist, TINY, 0, tmp_path / "again", "key")
    np.testing.assert_array_equal(one.images, again.images)
    np.testing.assert_array_equal(one.labels, again.labels)
    np.testing.assert_array_equal(ends, ends_again)
    for name in ("autoencoder", "classifier", "interpolated"):
        assert (tmp_path / "one" / f"{name}.safetensors").read_bytes() == (
            tmp_path / "again" / f"{name}.safetensors"
        ).read_bytes()
    other, _ = interpolated_source(mnist, TINY, 1, tmp_path / "other", "key of another seed")
    assert not np.array_equal(one.images, other.images)


def test_each_is_made_of_two_reserved_digits_that_no_other_is_made_of(
    mnist: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        ambiguous_digits,
        "trained_vae",
        lambda images, dimensions, epochs, seed: trained_vae(images, dimensions, 1, seed),
    )
    made, ends = interpolated_source(mnist, TINY, 0, tmp_path, "key")
    assert made.name == "interpolated"
    assert made.images.shape == (60, 28, 28)
    assert ends.shape == (60, 2)
    assert len(np.unique(ends)) == 120
    assert set(ends.ravel().tolist()) <= set(reserve(mnist.part, 300, 0).tolist())
    assert (mnist.digits[ends[:, 0]] != mnist.digits[ends[:, 1]]).all()
    assert (mnist.part[ends] == "train").all()
    reserved = reserve(mnist.part, 300, 0)
    reader = trained(LeNet, mnist.images[reserved], mnist.labels[reserved], 1, 0)
    np.testing.assert_allclose(
        made.labels, predicted(reader, made.images).double().numpy(), atol=1e-6
    )


def test_the_way_from_one_digit_to_another_begins_and_ends_with_them(mnist: Source):
    vae = trained_vae(mnist.images[:200], dimensions=6, epochs=2, seed=0)
    one, other = mnist.images[[0, 1]], mnist.images[[5, 6]]
    start, end = between(vae, one, other, np.zeros(2)), between(vae, one, other, np.ones(2))
    np.testing.assert_array_equal(start, between(vae, one, one, np.full(2, 0.4)))
    np.testing.assert_array_equal(end, between(vae, other, one, np.zeros(2)))
    assert not np.array_equal(start, end)


def test_an_autoencoder_learns_what_digits_look_like(mnist: Source):
    errors = []
    for epochs in (1, 25):
        vae = trained_vae(mnist.images[:200], dimensions=6, epochs=epochs, seed=0)
        made = between(vae, mnist.images[:50], mnist.images[:50], np.zeros(50))
        errors.append(np.abs(made.astype(float) - mnist.images[:50]).mean())
    assert errors[1] < 0.7 * errors[0]


def test_labels_are_chosen_evenly_over_entropy():
    rng = np.random.default_rng(0)
    probs = np.concatenate(
        [rng.dirichlet(np.full(10, share), 700) for share in (0.02, 0.1, 0.5, 5)]
    )
    rows = evenly(probs, 500, seed=0)
    assert len(np.unique(rows)) == 500
    level = (entr(probs).sum(1) / np.log(10) * 10).astype(int).clip(max=9)
    cell, all_cells = level[rows] * 10 + probs[rows].argmax(1), level * 10 + probs.argmax(1)
    chosen, there_are = np.bincount(cell, minlength=100), np.bincount(all_cells, minlength=100)
    assert ((chosen >= chosen.max() - 1) | (chosen == there_are)).all()


def test_too_few_digits(mnist: Source):
    with pytest.raises(
        InputError, match=r"interpolation.digits is 901, but MNIST has only 900 training items"
    ):
        reserve(mnist.part, 901, 0)
    with pytest.raises(
        InputError,
        match=r"interpolation.images is 5, but interpolation.digits gave only 4 pairs of "
        r"different digits",
    ):
        evenly(np.full((4, 10), 0.1), 5, 0)
    with pytest.raises(
        InputError,
        match=r"interpolation.digits is 10; 6 images of two digits each take at least 12",
    ):
        Interpolation(digits=10, images=6)
    assert len(pairs(np.zeros(40, int), 0)) == 0
