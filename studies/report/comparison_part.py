"""What a report shows of a comparison between networks: barriers (Figure 11), CKA (12), Grad-CAM
stability (9), and a table of all.
"""

from matplotlib.figure import Figure

from studies.analysis.collect import Record
from studies.analysis.comparison.comparison import NAMES, Comparison, span
from studies.figures.figure_spec import DrawnFigure, FigureSpec
from studies.figures.rendered_figure import RenderedFigure, rendered
from studies.figures.representation_figures import draw_barriers, draw_similarities
from studies.plan.published_numbers import published_fact
from studies.report.comparison_kinds import KINDS
from studies.report.section import ComparisonSpec, Section
from studies.tables.captions import notices
from studies.tables.listing import Listing

SEEDS = {"same": "the same", "different": "different", "all": "all"}


def rendered_comparison(
    spec: ComparisonSpec,
    result: Comparison | str,
    notes: list[str],
    records: list[Record],
    section: Section,
) -> list[RenderedFigure]:
    """Its figures; the last one brings the table of all numbers along."""
    caption = [*notices(records, section.scale), *notes]
    if isinstance(result, str):
        whole = FigureSpec(spec.name, spec.title)
        return [RenderedFigure(whole, None, [*caption, f"Not drawn: {result}."])]
    figures = []
    for kind, name in KINDS.items():
        listings = (
            [comparison_listing(spec, result, section, caption)] if kind == list(KINDS)[-1] else []
        )
        of_kind = FigureSpec(f"{spec.name}-{kind}", f"{spec.title}: {name}")
        fact = published_fact((spec.published or {}).get(kind, ""))

        def draw(kind: str = kind, fact: list[str] = fact) -> DrawnFigure:
            figure, note = draw_comparison(kind, result, section)
            return figure, [note or result.probe_set, *fact]

        figures.append(rendered(of_kind, draw, caption, listings))
    return figures


def draw_comparison(kind: str, result: Comparison, section: Section) -> tuple[Figure | None, str]:
    """One of the figures, or why there is none."""
    figure = (
        draw_barriers(result, section.label)
        if kind == "barrier"
        else draw_similarities(result, kind, section.label)
    )
    if figure:
        return figure, ""
    if kind == "barrier":
        return None, "Not drawn: no seed has runs of two methods."
    if not any(value.measure == kind for value in result.values):
        return None, f"Not drawn: {result.network} has no layer that gives maps."
    return None, "Not drawn: it is not defined for any two runs."


def comparison_listing(
    spec: ComparisonSpec, result: Comparison, section: Section, caption: list[str]
) -> Listing:
    """Every mean over pairs of runs, with how many pairs and items are behind it."""
    rows = [
        {
            "measure": NAMES[row.measure],
            "methods": f"within {section.label(row.methods[0])}"
            if len(set(row.methods)) == 1
            else " and ".join(map(section.label, row.methods)),
            "seeds": SEEDS[row.seeds],
            "mean": row.mean,
            "sd": row.sd,
            "pairs": row.pairs,
            "undefined": row.undefined,
            "items": span(row.items),
            "items_left_out": row.left_out,
        }
        for row in result.rows
    ]
    shown = {
        "measure": "measure",
        "methods": "runs",
        "seeds": "of seeds",
        "mean": "mean",
        "sd": "SD over pairs",
        "pairs": "pairs",
        "items": "items",
    }
    messages = [
        *caption,
        result.probe_set,
        f"High entropy: from the {result.quantile:g} quantile on.",
        *result.notes,
    ]
    return Listing(spec.name, f"{spec.title}: all numbers", messages, shown, rows)
