"""OODScores on networks, data, options and files that are not as they should be: one
sentence each.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from callbacks import OODScores
from callbacks.ood_scores import SCORES
from core.errors import InputError
from lightning_modules.networks import Network
from tests.callbacks.patches import Patches, classifier_of, ready_patches, write_noise
from tests.datamodules.io.test_idx import idx_bytes


@pytest.fixture
def data() -> Patches:
    return ready_patches()


@pytest.fixture
def noise(tmp_path: Path) -> str:
    return write_noise(tmp_path)


class Headless(nn.Module):
    def __init__(self, input_shape, num_classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)


class DeepHead(Network):
    def __init__(self, input_shape, num_classes):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, num_classes))

    def features(self, inputs: Tensor) -> Tensor:
        return inputs.flatten(1)


def test_networks_without_what_a_score_needs(data: Patches, noise: str):
    with pytest.raises(
        InputError,
        match=r"Headless does not name its penultimate layer; OOD scores need "
        r"`features\(inputs\)` and a module `head`",
    ):
        OODScores(sets=[noise]).run(classifier_of(data, Headless), data)
    with pytest.raises(
        InputError, match="the head of DeepHead is Sequential; leave vim out of OODScores's scores"
    ):
        OODScores(sets=[noise], k=3).run(classifier_of(data, DeepHead), data)
    result = OODScores(sets=[noise], k=3, scores=SCORES[:-1]).run(
        classifier_of(data, DeepHead), data
    )
    assert len(result.metrics) == 3 * 7


def test_data_and_weights_that_cannot_be_scored(data: Patches, noise: str):
    with pytest.raises(
        InputError, match="k is 91; it must be from 1 to 90, the number of training items"
    ):
        OODScores(sets=[noise], k=91).run(classifier_of(data), data)
    huge = classifier_of(data)
    with torch.no_grad():
        huge.network.head.weight.fill_(3e38)
    with pytest.raises(
        InputError, match=r"the energy score of the test items is no finite number for \d+ of 40"
    ):
        OODScores(sets=[noise], scores=["energy"]).run(huge, data)
    with torch.no_grad():
        huge.network.head.bias[0] = torch.nan
    with pytest.raises(
        InputError, match=r"OODScores: network.head.bias holds values that are not finite"
    ):
        OODScores(sets=[noise]).run(huge, data)
    listed = Patches()
    listed.use(data.corpus)
    listed.corpus.inputs = [image.float() for image in data.corpus.inputs]
    with pytest.raises(InputError, match="Patches reads its inputs one by one"):
        OODScores(sets=[noise], k=3).run(classifier_of(data), listed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"scores": ["mps"]},
            "scores name mps; they must be of msp, energy, entropy, margin, odin, knn, "
            "mahalanobis, vim",
        ),
        ({"scores": []}, "neither scores nor detectors"),
        ({"scores": ["msp", "msp"]}, "scores and detectors name msp twice"),
        (
            {"detectors": [{"class_path": "pytorch_ood.detector.KNN"}]},
            "scores and detectors name knn twice",
        ),
        (
            {"detectors": [{"class_path": "pytorch_ood.detector.ODIN"}]},
            "which takes neither logits nor penultimate features",
        ),
        ({"sets": ["a/images", "b/images"]}, "sets name images twice"),
        ({"sets": {"far away": "a"}}, "sets hold the name 'far away'"),
        ({"temperature": 0.0}, "temperature is 0.0; it must be above 0"),
    ],
)
def test_options_that_cannot_be(options: dict, message: str):
    with pytest.raises(InputError) as error:
        OODScores(**options)
    assert message in str(error.value)


def test_a_file_that_is_wrong_stops_the_run_where_an_absent_one_does_not(
    data: Patches, tmp_path: Path
):
    (tmp_path / "cut.idx").write_bytes(idx_bytes(np.zeros((3, 8, 8), np.uint8))[:-1])
    with pytest.raises(InputError, match=r"cut.idx holds 191 bytes of data"):
        OODScores(sets=[str(tmp_path / "cut.idx")], scores=["msp"]).run(classifier_of(data), data)
    result = OODScores(sets=[str(tmp_path / "gone.idx")], scores=["msp"]).run(
        classifier_of(data), data
    )
    assert result.metrics == {}
    assert (
        "gone_auroc, gone_aupr and gone_fpr95 of all scores are absent: there is no file or folder"
        in result.notes[0]
    )
