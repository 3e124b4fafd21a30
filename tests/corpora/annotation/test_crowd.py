"""The simulated crowd of yes/no/unsure annotators."""

import numpy as np
import pytest

from core.errors import InputError
from corpora.annotation.crowd import YesNoUnsureCrowd, class_evidence


def test_one_annotator_casts_at_least_one_vote_and_at_most_two_per_class():
    evidence = np.random.default_rng(0).normal(scale=2, size=(2000, 6))
    votes = YesNoUnsureCrowd(annotators=1).judge(evidence, seed=0)
    assert set(np.unique(votes)) == {0, 1, 2}
    assert votes.sum(1).min() == 1
    assert (votes == 2).sum(1).max() == 1


@pytest.mark.parametrize("annotators", [1, 3, 10])
def test_the_crowd_casts_at_least_one_vote_per_annotator(annotators):
    evidence = np.zeros((500, 10))
    votes = YesNoUnsureCrowd(annotators=annotators).judge(evidence, seed=1)
    assert votes.shape == (500, 10)
    assert votes.sum(1).min() >= annotators
    assert votes.max() <= 2 * annotators


def test_who_would_reject_every_class_is_unsure_about_the_likeliest():
    evidence = np.array([[0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0]])
    assert YesNoUnsureCrowd(annotators=4, noise=0).judge(evidence, seed=0).tolist() == [
        [0, 0, 4, 0, 0, 0, 0, 0]
    ]


def test_yes_counts_two_and_unsure_counts_one():
    belief = np.array([[0.6, 0.3, 0.1], [0.45, 0.35, 0.2 - 1e-9]])
    assert YesNoUnsureCrowd(annotators=5, noise=0).judge(np.log(belief), seed=0).tolist() == [
        [10, 5, 0],
        [5, 5, 0],
    ]


def test_clear_evidence_gives_every_vote_to_one_class():
    evidence = 30 * np.eye(4)
    np.testing.assert_array_equal(
        YesNoUnsureCrowd(annotators=7).judge(evidence, seed=2), 14 * np.eye(4)
    )


def test_ambiguous_evidence_splits_the_crowd():
    evidence = np.tile([3.0, 3.0, -9.0], (300, 1))
    votes = YesNoUnsureCrowd().judge(evidence, seed=0)
    assert (votes[:, :2] > 0).all()
    assert not votes[:, 2].any()
    assert abs(votes[:, 0].mean() - votes[:, 1].mean()) < 0.5


def test_votes_depend_on_the_seed_alone():
    evidence = np.zeros((20, 3))
    crowd = YesNoUnsureCrowd()
    np.testing.assert_array_equal(crowd.judge(evidence, seed=4), crowd.judge(evidence, seed=4))
    assert (crowd.judge(evidence, seed=4) != crowd.judge(evidence, seed=5)).any()


@pytest.mark.parametrize("annotators", [0, -2])
def test_a_crowd_of_nobody_is_named(annotators):
    with pytest.raises(InputError, match=f"the crowd has {annotators} annotators;"):
        YesNoUnsureCrowd(annotators=annotators)


def test_evidence_is_the_nearness_of_known_examples_other_than_its_own():
    rng = np.random.default_rng(3)
    known, labels = rng.normal(size=(12, 5)), np.repeat([0, 1], 6)
    own = np.array([[0, 7], [3, 11], [5, 6]])
    images = (known[own[:, 0]] + known[own[:, 1]]) / 2
    distance = np.linalg.norm(images[:, None] - known, axis=2)
    nearest = np.empty((3, 2))
    closest = np.empty(3)
    for image in range(3):
        others = [example for example in range(12) if example not in own[image]]
        closest[image] = min(distance[image, others])
        for label in range(2):
            nearest[image, label] = np.mean(
                sorted(
                    distance[image, [example for example in others if labels[example] == label]]
                )[:3]
            )
    np.testing.assert_allclose(
        class_evidence(images, known, labels, own), -8 * nearest / np.median(closest), rtol=1e-10
    )
