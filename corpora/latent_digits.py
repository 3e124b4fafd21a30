"""A small variational autoencoder of handwritten digits: a space in which the way from one digit to
another passes through digits.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from corpora.short_training import as_inputs, batches, reproducibly

PIXELS, HIDDEN = 28 * 28, 400
BATCH, RATE = 128, 1e-3


class DigitVAE(nn.Module):
    """One hidden layer on either side of a few latent dimensions (Kingma and Welling 2014).

    >>> DigitVAE(12).decode(torch.zeros(2, 12)).shape
    torch.Size([2, 28, 28])
    """

    def __init__(self, dimensions: int):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(PIXELS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * dimensions)
        )
        self.decoder = nn.Sequential(
            nn.Linear(dimensions, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, PIXELS)
        )

    def encode(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of where each image lies, [N, dimensions] each."""
        mean, log_variance = self.encoder(inputs).chunk(2, dim=1)
        return mean, log_variance

    def decode(self, places: Tensor) -> Tensor:
        """The brightness of each pixel, from 0 to 1, [N, 28, 28]."""
        return self.decoder(places).sigmoid().unflatten(1, (28, 28))

    def loss(self, inputs: Tensor) -> Tensor:
        """The negative evidence lower bound, per image."""
        mean, log_variance = self.encode(inputs)
        drawn = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        unlike = F.binary_cross_entropy_with_logits(
            self.decoder(drawn), inputs.flatten(1), reduction="sum"
        )
        far = (mean**2 + log_variance.exp() - log_variance - 1).sum() / 2
        return (unlike + far) / len(inputs)


def trained_vae(images: np.ndarray, dimensions: int, epochs: int, seed: int) -> DigitVAE:
    """An autoencoder of these images, the same for the same seed."""
    with reproducibly(seed):
        inputs, vae = as_inputs(images), DigitVAE(dimensions)
        optimizer = torch.optim.Adam(vae.parameters(), lr=RATE)
        for epoch in range(epochs):
            for rows in batches(len(inputs), BATCH, seed, epoch):
                loss = vae.loss(inputs[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return vae.eval()


def between(vae: DigitVAE, one: np.ndarray, other: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Images as bytes, decoded from the straight way between two images of each row; share 0 is the
    first of them, 1 the other.
    """
    with reproducibly(0), torch.no_grad():
        (start, _), (end, _) = vae.encode(as_inputs(one)), vae.encode(as_inputs(other))
        weight = torch.from_numpy(share).float()[:, None]
        return (vae.decode(start + weight * (end - start)) * 255).round().to(torch.uint8).numpy()
