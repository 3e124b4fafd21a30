"""The table that `make demo` prints: every delivery, its ensemble, floor and ceiling."""

from dataclasses import replace

import pytest

from core.terminal import plain_console
from studies.demo import COLUMNS, main_table
from studies.tables.table_worth import with_worth
from studies.tables.tables import build_table
from tests.studies.predicted_runs import SECTION, SPEC, records

BOUNDS = {"floor": 0.9, "ceiling": 0.1, "low": 0.1, "high": 0.1}


@pytest.mark.parametrize("known", [True, False])
def test_every_delivery_has_its_ensemble_and_a_skill_where_it_is_known(known, tmp_path):
    spec = replace(SPEC, columns=list(COLUMNS))
    runs = records(tmp_path, shared=False, worth={"soft_nll": BOUNDS} if known else None)
    (table,) = with_worth([build_table(spec, runs, ["seed"])])
    console = plain_console()
    with console.capture() as printed:
        console.print(main_table(table, SECTION))
    lines = [line.split() for line in printed.get().splitlines()[1:]]
    assert [line[0] for line in lines] == [
        *["delivery", "soft", "ensemble", "majority", "ensemble"],
        *["floor", "ceiling"],
    ]
    cell = table.cells["SoftLabels", "soft_nll"]
    assert cell.summary is not None
    assert cell.ensemble is not None
    assert lines[1][1] == f"{cell.summary.mean:.3f}±{cell.summary.sd:.3f}"
    assert lines[2][1] == f"{cell.ensemble.value:.3f}"
    skill = 100 * (0.9 - cell.summary.mean) / 0.8
    assert lines[1][6:] == ([f"{skill:.1f}%"] if known else [])
    assert lines[5] == (["floor", "0.900"] if known else ["floor"])
