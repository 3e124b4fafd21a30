"""The files of one figure: equal ones of equal figures, all of one layout."""

from io import BytesIO

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from studies.figures.figure_style import panels, render


def drawn() -> Figure:
    figure, (left, right) = panels(2, 2.0)
    left.set_ylabel("a label\nof three\nlines")
    right.plot([0, 1e6])
    return figure


def test_every_file_has_the_layout_of_the_first_one_which_keeps_labels_on_the_page():
    figure = drawn()
    first = render(figure, "png")
    places = [axes.get_position().bounds for axes in figure.axes]
    assert figure.get_tightbbox().x0 >= 0
    render(figure, "svg")
    small = render(figure, "png", 100)
    assert [axes.get_position().bounds for axes in figure.axes] == places
    sizes = [np.array(Image.open(BytesIO(png)).size) for png in (first, small)]
    assert (sizes[0] == 2 * sizes[1]).all()
    assert render(drawn(), "png") == first
