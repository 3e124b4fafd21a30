"""The report of `cli.py score`: one page with all that was found."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from metrics.registry import Score
from metrics.worth import ceiling_in_words
from studies.html_page import caption, details, document, picture
from studies.scoring.judgement import Difference, Found, Judgement
from studies.scoring.score_figure import WIDTH
from studies.scoring.score_options import MARK
from studies.tables.grid import NOTHING, Column, Grid, GridCell, grid_html
from studies.tables.table_formats import p_value

EXPLAINED = (
    "Floor: the best constant prediction, out of the training items' votes. Ceiling: what a model "
    "would score that knew every item's distribution, judged by votes as few as these; where votes "
    "are too few to tell, an interval. Skill: 0 % at the floor, 100 % at the ceiling. Small type: "
    "95 % intervals, by resampling items with their votes."
)


@dataclass(frozen=True)
class ScoreReport:
    """All that the page shows."""

    title: str
    notices: Sequence[str]  # what nobody may overlook
    about: Sequence[str]  # of the data, the items and the files
    parts: Mapping[str, Judgement]  # by heading: all items first, then strata
    notes: Sequence[str]
    figure: bytes | None  # an SVG
    classes: Grid
    items: Mapping[str, Grid]  # those that differ most, by file
    command: str
    versions: str

    def page(self) -> str:
        """The whole page."""
        return document(self.title, self._sections(), MARK)

    def _sections(self) -> Iterator[str]:
        yield f"<h1>{html.escape(self.title)}</h1>"
        yield from (f'<p class="notice">{html.escape(text)}</p>' for text in self.notices)
        yield from (f"<p>{html.escape(text)}</p>" for text in self.about)
        for place, (heading, judged) in enumerate(self.parts.items()):
            yield f"<section><h2>{html.escape(heading)}</h2>{grid_html(score_grid(judged))}"
            yield caption([EXPLAINED] if place == 0 else []) + "</section>"
            if place == 0:
                if judged.differences:
                    yield from _compared(judged.differences)
                if self.figure:
                    yield self._figure(self.figure)
        yield f"<section><h2>Classes</h2>{grid_html(self.classes)}"
        yield caption(["Their mean share in votes and in predictions, of the judged items."])
        yield "</section><section><h2>Items that differ most</h2>"
        for name, grid in self.items.items():
            yield f"<h3>{html.escape(name)}</h3>{grid_html(grid)}"
        yield caption(["By KL; the likeliest class of each side with its share."]) + "</section>"
        if self.notes:
            yield "<h2>Notes</h2><ul>"
            yield from (f"<li>{html.escape(note)}</li>" for note in self.notes)
            yield "</ul>"
        yield f"<h2>What produced this</h2><p>{html.escape(self.versions)}</p>"
        yield details("The command", self.command, is_open=True)

    def _figure(self, svg: bytes) -> str:
        heading = "Reliability and entropy"
        said = (
            "Left: how often the majority agrees with the predicted class, by confidence; wide "
            "where many items lie. Right: the model's entropy by that of annotators. Dashed: "
            "perfect agreement."
        )
        return (
            f"<section><h2>{heading}</h2><figure>{picture(svg, heading, WIDTH)}"
            f"<figcaption>{caption([said])}</figcaption></figure></section>"
        )


def score_grid(judged: Judgement) -> Grid:
    """A row per score: what each file has, floor and ceiling; the best of several is bold."""
    columns = [Column("Score", "label", right=False)]
    headings = (*judged.found, "Floor", "Ceiling")
    columns += [Column(heading, "value", right=True) for heading in headings]
    rows = []
    for score in judged.scores:
        found = [of_file[score.name] for of_file in judged.found.values()]
        best = _best(score, found)
        arrow = {"lower": " ↓", "higher": " ↑", None: ""}[score.better]
        cells = [_cell(score, each, each.value == best) for each in found]
        ends = [_floor(judged, score), _ceiling(judged, score)]
        rows.append([GridCell(score.label + arrow), *cells, *ends])
    return Grid("scores", "Scores", [], columns, rows)


def _best(score: Score, found: Sequence[Found]) -> float:
    values = [each.value for each in found if not math.isnan(each.value)]
    if len(found) < 2 or not values or score.better is None:
        return math.nan
    return (min if score.better == "lower" else max)(values)


def _floor(judged: Judgement, score: Score) -> GridCell:
    floor = judged.floors[score.name]
    return GridCell(number(math.nan if floor is None else floor, score.digits))


def _ceiling(judged: Judgement, score: Score) -> GridCell:
    bounds = judged.bounds.get(score.name)
    return GridCell(ceiling_in_words(bounds, score.digits) if bounds else NOTHING)


def _cell(score: Score, found: Found, bold: bool) -> GridCell:
    notes = {"interval": between(found.low, found.high, score.digits)}
    if not math.isnan(found.skill):
        ends = between(100 * found.skill_low, 100 * found.skill_high, 1)
        notes["skill"] = f"skill {found.skill:.1%}" + (f" ({ends})" if ends else "")
    return GridCell(number(found.value, score.digits), bold, notes)


def number(value: float, digits: int) -> str:
    """A dash where there is none.

    >>> number(0.12345, 3), number(math.nan, 3)
    ('0.123', '–')
    """
    return f"{value:.{digits}f}" if math.isfinite(value) else NOTHING


def between(low: float, high: float, digits: int) -> str:
    """An interval in words; nothing where it is not known."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{number(low, digits)} to {number(high, digits)}"


def _compared(differences: Sequence[Difference]) -> Iterator[str]:
    columns = [
        Column("Score", "word", right=False),
        Column("First, second", "long", right=False),
        Column("First minus second", "number", right=True),
        Column("p", "number", right=True),
        Column("Better", "long", right=False),
    ]
    rows = [
        [
            GridCell(each.score.label),
            GridCell(f"{each.first}\n{each.second}"),
            GridCell(
                number(each.value, each.score.digits),
                notes={"interval": between(each.low, each.high, each.score.digits)},
            ),
            _p_cell(each),
            GridCell(each.better or "not decided"),
        ]
        for each in differences
        if each.score.better is not None
    ]
    grid = Grid("compared", "Compared", [], columns, rows, css_class="listing")
    yield f"<section><h2>Compared pairwise</h2>{grid_html(grid)}"
    yield caption(
        [
            "Differences on the same items. p: two-sided, by the spread of resampled differences; "
            "Holm: adjusted for all pairs of the score. Seeds of training are not in it: these "
            "are the files' own predictions."
        ]
    )
    yield "</section>"


def _p_cell(difference: Difference) -> GridCell:
    if math.isnan(difference.p):
        return GridCell(NOTHING)
    adjusted = "" if difference.holm_p == difference.p else f"Holm {p_value(difference.holm_p)}"
    return GridCell(p_value(difference.p), notes={"p": adjusted})
