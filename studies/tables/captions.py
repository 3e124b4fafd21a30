"""What is said beside a table or a figure: where its data came from, at what scale, and by which
statistics it was judged.
"""

import math
from typing import Any

from studies.analysis.collect import Record
from studies.analysis.signed_ranks import EXACT_PAIRS
from studies.analysis.statistics import Test
from studies.report.section import ABSENT, Section
from studies.tables.measures import factor_name
from studies.tables.tables import Table
from studies.tables.worth_rows import worth_sentences

ALTERNATIVES = {
    "two-sided": "two-sided",
    "less": "one-sided (row less than reference)",
    "greater": "one-sided (row greater than reference)",
}
TESTS = {"wilcoxon": "paired Wilcoxon signed-rank test", "t": "paired t-test"}


def notices(records: list[Record], scale: str) -> list[str]:
    """What nobody may overlook: simulated annotators, a reduced scale, and the frozen model that
    the inputs were embedded with.
    """
    simulated = [r for r in records if r.results.get("simulated_annotators")]
    result = []
    if simulated:
        datasets = ", ".join(sorted({str(r.results.get("dataset")) for r in simulated}))
        share = (
            "" if len(simulated) == len(records) else f" in {len(simulated)} of {len(records)} runs"
        )
        result.append(
            f"SIMULATED annotators{share} ({datasets}): the votes were drawn by a program, not "
            "given by people."
        )
    if scale:
        result.append(f"REDUCED scale: {_sentence(scale)}")
    embedders = sorted({name for r in records if (name := r.results.get("embedder"))})
    if embedders:
        result.append(f"Inputs are frozen embeddings: {'; '.join(embedders)}.")
    return result


def simulated_mark(records: list[Record]) -> str:
    """For titles of figures, which may travel without their captions.

    >>> simulated_mark([])
    ''
    """
    marks = [bool(r.results.get("simulated_annotators")) for r in records]
    return (
        ""
        if not any(marks)
        else "SIMULATED annotators"
        if all(marks)
        else "partly SIMULATED annotators"
    )


def seeds_of(numbers: set[int]) -> str:
    """
    >>> seeds_of({5}), seeds_of({3, 5})
    ('5 seeds', '3 to 5 seeds')
    """
    low, high = min(numbers), max(numbers)
    return f"{high} seed{'s' * (high != 1)}" if low == high else f"{low} to {high} seeds"


def table_caption(table: Table, section: Section) -> list[str]:
    """The statistics of a table, sentence by sentence, after what nobody may overlook."""
    cells = list(table.cells.values())
    messages = notices(table.records, section.scale)
    numbers = {cell.summary.n if cell.summary else 0 for cell in cells}
    planned = (
        f" (of {table.spec.planned_units} planned)"
        if min(numbers) < table.spec.planned_units
        else ""
    )
    within = f" within each {factor_name(table.spec.groups)}" if table.spec.groups else ""
    messages.append(
        f"Mean ± SD over {seeds_of(numbers)}{planned}; the best mean of each column{within} is "
        "bold."
    )
    if table.spec.pivot:
        messages.append(f"Entries are {table.measure(table.columns[0]).axis}.")
    elif in_nats := [
        table.measure(column).name
        for column in table.columns
        if table.measure(column).unit == "nats"
    ]:
        messages.append(f"In nats: {', '.join(in_nats)}.")
    dropped = sum(cell.dropped for cell in cells)
    if dropped:
        messages.append(
            f"Left out because they are NaN or infinite: {dropped} value{'s' * (dropped > 1)}."
        )
    messages += worth_sentences(table)
    if table.spec.reference is not ABSENT:
        messages += _test_sentences(table, section)
    entry = table.spec.published_entry
    if any(cell.published for cell in cells):
        messages.append(published_sentence(entry))
    return messages


def published_sentence(entry: dict[str, Any]) -> str:
    """Where the published numbers of a table are from."""
    seeds, note = (
        f", {entry['seeds']} seeds" if "seeds" in entry else "",
        f"; {entry['note']}" if "note" in entry else "",
    )
    return (
        f"Published: {entry['paper']} ({entry['source']}), {entry['where']}{seeds}; "
        f"{entry['setting']}{note}."
    )


def _test_sentences(table: Table, section: Section) -> list[str]:
    spec = table.spec
    reference = section.label(spec.reference)
    of_group = f" of the same {factor_name(spec.groups)}" if spec.groups else ""
    compared = f"{ALTERNATIVES[spec.alternative]}, of each row against {reference}{of_group}"
    tested = [cell for cell in table.cells.values() if cell.test]
    alone = [cell for cell in tested if cell.difference and cell.difference.alone]
    tests = [cell.test for cell in alone if cell.test]
    over_seeds = f"{TESTS[spec.test]}{way_of_p(spec.test, tests)}"
    causes = dict.fromkeys(cell.difference.alone for cell in alone if cell.difference)
    if len(alone) == len(tested):
        messages = [f"p: {over_seeds}, {compared}, paired by seed."]
        messages += [f"Seeds alone count as random: {'; '.join(causes)}."] * bool(causes)
    else:
        messages = [f"p: t-test over seeds, items and votes, {compared}, paired by seed and item."]
        if alone:
            messages.append(
                f"In {len(alone)} of {len(tested)} tests seeds alone count as random "
                f"({'; '.join(causes)}), and p is of a {over_seeds}."
            )
    if not tested:
        return [*messages, "No test was possible: it takes at least two finished pairs."]
    limits = sorted(
        {(test.n, test.minimum_p) for test in tests if not math.isnan(test.minimum_p)}, reverse=True
    )
    if limits:
        listed = ", ".join(f"{p:.4g} ({n} pairs with a difference)" for n, p in limits)
        messages.append(f"Smallest p that this test can give: {listed}.")
    if spec.family == "holm":
        least = (
            f", so none can be below {min(1.0, len(tested) * limits[0][1]):.4g}"
            if limits and len(alone) == len(tested)
            else ""
        )
        messages.append(f"Holm: p adjusted over all {len(tested)} tests of this table{least}.")
    messages.append(f"k/n: in k of n seeds the row is better than {reference}.")
    messages.append(
        f"Δ: mean difference from {reference} with its 95 % interval. Needs: how many seeds, "
        "items or votes per item, each alone, would show such a difference at 5 % in 80 of 100 "
        "studies; a dash where no number would."
    )
    return messages


def way_of_p(test: str, tests: list[Test]) -> str:
    """How p-values were made: exactly, or nearly so where there are very many pairs."""
    if test != "wilcoxon":
        return ""
    nearly = sum(made.n > EXACT_PAIRS for made in tests)
    if not nearly:
        return ", exact"
    which = "" if nearly == len(tests) else f" (in {nearly} of {len(tests)} tests)"
    return (
        f", by a saddlepoint approximation beyond {EXACT_PAIRS} pairs{which} and exact up to that"
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
