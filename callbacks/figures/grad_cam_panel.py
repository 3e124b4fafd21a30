"""A panel of images, each beside its Grad-CAM map."""

import matplotlib
import numpy as np
import torch.nn.functional as F
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from torch import Tensor

from callbacks.figures.figure_text import TITLE, as_typed

PER_LINE = 4  # items side by side
COLORS = matplotlib.colormaps["viridis"]  # reads the same for the colour-blind and in grey


def draw_panel(
    images: Tensor, maps: Tensor, annotators: Tensor, model: Tensor, rows: np.ndarray, title: str
) -> Figure:
    """Each item's image [C, H, W] and its map [h, w], the latter over the image in grey; above
    them, what people and the model say.

    Maps are scaled to their own largest value: they say where, not how much.
    """
    lines = -(-len(images) // PER_LINE)
    figure = Figure(
        figsize=(9.2, 0.9 + 1.65 * lines), layout=ConstrainedLayoutEngine(wspace=0.08), dpi=150
    )
    figure.suptitle(as_typed(title, TITLE), fontsize=10)
    grid = figure.subplots(lines, PER_LINE, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for place, (axes, image, weights) in enumerate(zip(grid.flat, images, maps, strict=False)):
        picture = _picture(image)
        grey = picture.mean(-1, keepdims=True)
        over = 0.35 * grey + 0.65 * COLORS(_heat(weights, image))[..., :3]
        gap = np.ones((len(picture), max(1, picture.shape[1] // 16), 3))
        axes.imshow(np.concatenate([picture, gap, over], axis=1), interpolation="nearest")
        both = f"annotators: {_top(annotators[place])}\nmodel: {_top(model[place])}"
        axes.set_title(f"item {rows[place]}\n{both}", fontsize=8, loc="left")
    colors = ScalarMappable(cmap=COLORS)
    scale = figure.colorbar(colors, ax=grid, location="bottom", shrink=0.4, aspect=40)
    label = "right of each image: Grad-CAM as a share of the map's largest value"
    scale.set_label(label, fontsize=8)
    scale.ax.tick_params(labelsize=8)
    return figure


def _top(probs: Tensor) -> str:
    """
    >>> import torch
    >>> _top(torch.tensor([0.2, 0.8]))
    'class 1 (80 %)'
    """
    share, chosen = probs.max(-1)
    return f"class {int(chosen)} ({100 * float(share):.0f} %)"


def _picture(image: Tensor) -> np.ndarray:
    """Colours [H, W, 3] with the contrast stretched from 0 to 1; an image of one channel, or of
    other than three, is grey.
    """
    image = image.float() if len(image) == 3 else image.float().mean(0).expand(3, -1, -1)
    stretched = (image - image.min()) / (image.max() - image.min()).clamp_min(1e-12)
    return stretched.permute(1, 2, 0).numpy()


def _heat(weights: Tensor, image: Tensor) -> np.ndarray:
    """The map at the image's size, from 0 to 1; 0 everywhere where nothing speaks for the class."""
    large = F.interpolate(weights[None, None].float(), image.shape[-2:], mode="bilinear")
    return large[0, 0].numpy() / max(float(weights.max()), 1e-12)
