"""What every figure of a report must keep to, and what a report's claims came to."""

from matplotlib.figure import Figure

from studies.report.report import Report


def check_legible(figure: Figure | None, may_touch: bool = True) -> None:
    """No text below 8 points, nothing beyond the page; axes beside each other where `may_touch` is
    not.
    """
    assert figure is not None
    figure.draw_without_rendering()
    texts = [
        text
        for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))
        if text.get_visible() and text.get_text()
    ]  # pyright: ignore
    assert min(text.get_fontsize() for text in texts) >= 8  # pyright: ignore
    page, content = figure.bbox, figure.get_tightbbox()
    assert min(content.x0, content.y0) >= 0
    assert content.x1 * figure.dpi <= page.width + 1
    assert content.y1 * figure.dpi <= page.height + 1
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert may_touch or not any(
        a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[number + 1 :]
    )


def not_tested(report: Report) -> set[str]:
    """The ids of claims that these runs cannot test."""
    return {judged.claim.id for judged in report.claims if judged.verdict.outcome == "not tested"}
