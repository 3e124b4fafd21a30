"""Text made to deceive: YAML that runs, explodes or repeats itself, grids without end, tables that
are not what their names say.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from callbacks.history import read_history
from callbacks.results import read_failure, read_results
from cli import main
from corpora.annotation.judgements import read_judgements
from corpora.annotation.soft_digits_table import read_soft_digits
from datamodules.datasets.chaosnli import NLI, read_subset
from datamodules.io.arrow_tables import read_columns
from datamodules.io.tables import read_table
from experiment.configuration import resolve
from studies.analysis.collect import Collection
from studies.plan.study import Study
from studies.report.section_reader import read_section
from tests.hostile.outcomes import check_sentence, limits, outcome
from tests.hostile.readers import judgement_rows, soft_digits_table, study, write_soft_digits
from tests.hostile.test_hostile_arrays import refused

BOMB = "\n".join(
    [
        "a0: &a0 [x, x, x, x, x, x, x, x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
    ]
)
HOSTILE_YAML = {
    "a function to call": "name: !!python/object/apply:os.system ['touch {made}']",
    "a class to build": "name: !!python/object/new:pathlib.Path ['{made}']",
    "a module to import": "name: !!python/module:this",
    "a tag of one's own": "name: !mine 3",
    "billions of laughs": BOMB,
    "a list that holds itself": "grids: &a [*a]",
    "an entry that holds itself": "grids: &a {{b: *a}}",
    "an alias for nothing": "grids: *nothing",
    "brackets without end": "[" * 100_000,
    "entries without end": "a: {{" * 100_000,
    "dashes without end": "- " * 50_000 + "x",
    "a key twice": "name: one\nname: two",
    "a key twice, deep within": "grids: {{main: {{seed_everything: [0], seed_everything: [1]}}}}",
    "two documents": "name: one\n---\nname: two",
    "a tab": "grids:\n\tmain: 1",
    "a NUL": "name: \0",
    "a command to a terminal": 'name: small\ntitle: "\\x1b[2J"',
    "a command to a terminal as a key": '{{"\\e[2J": 1}}',
    "a number of 5,000 digits": "name: " + "9" * 5000,
    "a list as a key": "? [a, b]\n: 1",
    "a merge of a number": "<<: 3",
}


@pytest.mark.parametrize("kind", HOSTILE_YAML)
def test_yaml_is_plain_or_refused(kind: str, tmp_path: Path):
    path, made = tmp_path / "some.yaml", tmp_path / "made"
    path.write_text(
        HOSTILE_YAML[kind].replace("{made}", str(made)).replace("{{", "{").replace("}}", "}")
    )
    refused(lambda: Study.load(path), "some.yaml")
    assert outcome(lambda: resolve(["--config", str(path)]), "some.yaml") == "sentence"
    assert not made.exists()


def test_on_the_command_line_it_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture):
    (tmp_path / "bomb.yaml").write_text(BOMB)
    for words in (
        ["fit", "--config", str(tmp_path / "bomb.yaml")],
        ["study", "plan", str(tmp_path / "bomb.yaml")],
    ):
        with pytest.raises(SystemExit) as end, limits():
            main(words)
        assert end.value.code == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        check_sentence(line, "bomb.yaml")


GOOD: dict[str, Any] = yaml.safe_load(study())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"grids": {"g": {f"f{n}": {f"l{k}": {} for k in range(10)} for n in range(9)}}},
            "grids would be 1,000,000,000 runs",
        ),
        (
            {
                "grids": {
                    g: {"seed_everything": list(range(300)), "f": {f"l{k}": {} for k in range(200)}}
                    for g in "ab"
                }
            },
            "grids would be 120,000 runs",
        ),
        ({"name": "../../elsewhere"}, "name is ../../elsewhere"),
        ({"name": "/tmp/elsewhere"}, "name is /tmp"),
        ({"name": ["x"]}, "name is"),
        ({"configs": "configs/digits.yaml"}, "configs must be a list"),
        ({"options": {"help": True}}, "options.help is no option of a run"),
        ({"grids": {"g": {"data.help": ["Digits"]}}}, "is no option of a run"),
        ({"options": {"no.such.option": 1}}, "no.such.option"),
        ({"options": {"--data": 1}}, "options must have options by their names"),
        ({"options": ["data"]}, "options must have options"),
        ({"options": {"trainer.max_epochs": float("nan")}}, "trainer.max_epochs"),
        ({"options": {"trainer.max_epochs": 1e400}}, "trainer.max_epochs"),
        (
            {"options": {"data": {"class_path": "os.system", "init_args": {"command": "true"}}}},
            "os.system",
        ),
        (
            {
                "grids": {
                    "g": {
                        "data": [
                            {"class_path": "subprocess.Popen", "init_args": {"args": ["true"]}}
                        ]
                    }
                }
            },
            "subprocess.Popen",
        ),
        ({"grids": {"g": "all"}}, "grids.g is empty"),
        ({"grids": {"g": {"seed_everything": 3}}}, "grids.g.seed_everything has no levels"),
        (
            {"grids": {"g": {"seed_everything": [[1, 2]]}}},
            "neither a word, a number nor a class_path",
        ),
        ({"grids": {"g": {"seed_everything": [-1]}}}, ""),
        ({"paired": {"a": 1}}, "paired must be a list"),
        ({"predict": "often"}, "predict must be true or false"),
        ({"report": [1]}, "report must be"),
        ({"extends": "study.yaml"}, "extends"),
        ({"extends": "../{folder}/study.yaml"}, "extends"),
        ({"extends": "a\0b"}, "a control character"),
        ({"extends": ["a"]}, "cannot be read as a study"),
    ],
)
def test_a_study_that_nobody_can_mean(changes: dict[str, Any], message: str, tmp_path: Path):
    path = tmp_path / "study.yaml"
    content = {**{key: value for key, value in GOOD.items() if key != "selections"}, **changes}
    path.write_text(yaml.safe_dump(content).replace("{folder}", tmp_path.name))
    if not message:  # a seed is looked at when a run starts
        assert outcome(lambda: Study.load(path).runs(), "study.yaml") == "result"
    else:
        assert message in refused(lambda: Study.load(path).runs(), "study.yaml")


@pytest.mark.parametrize("entry", [3, "main", [], {"from": ["main"]}, {"from": "main", "for_each": [["a"]], "then": {"a": 1}}, {"from": "main", "for_each": [], "then": {f"f{n}": {f"l{k}": {} for k in range(10)} for n in range(9)}}])  # fmt: skip  # noqa: E501
def test_a_selection_that_nobody_can_mean(entry: Any, tmp_path: Path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({**GOOD, "selections": {"best": entry}}))
    refused(lambda: Study.load(tmp_path / "study.yaml"), "study.yaml")


@pytest.mark.parametrize("report", [{"tables": 3}, {"tables": [3]}, {"tables": [{"name": "../up", "rows": "data.delivery", "columns": ["soft_nll"]}]}, {"figures": [{"name": "f", "kind": ["points"]}]}, {"claims": [{"id": 1}]}, {"datasets": {"a": 1}}, {"labels": 3}, {"more": 1}, {0: 1}, {"tables": [{"name": "t", "rows": ["a"], "columns": {"b": 1}}]}, {"tables": [{"name": "t", "rows": "data.delivery", "columns": ["soft_nll"], "where": {0: 1}}]}])  # fmt: skip  # noqa: E501
def test_a_report_that_nobody_can_mean(report: Any, tmp_path: Path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({**GOOD, "report": report}))
    planned = Study.load(tmp_path / "study.yaml")
    refused(lambda: read_section(planned, Collection.of(planned, tmp_path)), "study.yaml")


HEAD = "annotator,image,label,answer\n"
ROWS = "".join(f"ann,img,{label},no\n" for label in range(10))


@pytest.mark.parametrize(
    ("content", "end"),
    [
        (HEAD + ROWS, "result"),
        ("\ufeff" + HEAD + ROWS, "result"),
        ((HEAD + ROWS).replace("\n", "\r\n"), "result"),
        ((HEAD + ROWS).replace("img", '"img\nof two lines, ""quoted"""'), "result"),
        (HEAD + ROWS + "\n\n\n", "result"),
        ((HEAD + ROWS).replace(",", ";"), "sentence"),
        ((HEAD + ROWS).replace(",", "\t"), "sentence"),
        (HEAD + ROWS + "ann,img\n", "sentence"),
        (HEAD + ROWS.replace("no\n", "no,more\n"), "sentence"),
        (HEAD + ROWS + '"never closed', "sentence"),
        (HEAD + ROWS.replace("no", "n\0o"), "sentence"),
        (HEAD + ROWS.replace("img", "i\0mg"), "result"),
        ("annotator,annotator,image,label,answer\n" + ROWS.replace("ann,", "ann,ann,"), "sentence"),
        ("annotator,image,label\n" + ROWS.replace(",no", ""), "sentence"),
        (HEAD, "sentence"),
        (HEAD + ROWS.replace("0,no", "1e400,no"), "sentence"),
        (HEAD + ROWS + "ann," + "x" * 200_000 + ",1,no\n", "sentence"),
        (HEAD + ROWS.replace("no", "\x1b[2J\n" * 3), "sentence"),
        ("=cmd|' /C calc'!A0," + HEAD + ROWS, "sentence"),
    ],
)
def test_csv(content: str, end: str, tmp_path: Path):
    path = tmp_path / "raw.csv"
    path.write_text(content, newline="")
    assert outcome(lambda: read_judgements(path), "raw.csv") == end


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_csv_in_another_encoding(encoding: str, tmp_path: Path):
    (tmp_path / "raw.csv").write_bytes((HEAD + ROWS.replace("ann", "ännchen")).encode(encoding))
    assert "cannot be read as CSV" in refused(
        lambda: read_judgements(tmp_path / "raw.csv"), "raw.csv"
    )


VALUES = {
    "a struct": pa.array([{"a": 1}] * 40),
    "bytes": pa.array([b"\xff\0"] * 40),
    "decimals": pa.array([1] * 40).cast(pa.decimal128(30, 3)),
    "times": pa.array([2**62] * 40, pa.timestamp("us")),
    "days": pa.array([2**31 - 1] * 40, pa.date32()),
    "spans": pa.array([2**62] * 40, pa.duration("s")),
    "lists": pa.array([[1, 2]] * 40),
    "nothing": pa.nulls(40),
    "a map": pa.array([[("k", 1)]] * 40, pa.map_(pa.string(), pa.int32())),
    "a dictionary": pa.array(["yes"] * 40).dictionary_encode(),
    "nan": pa.array([float("nan")] * 40),
    "large numbers": pa.array([2**64 - 1] * 40, pa.uint64()),
    "a view of texts": pa.array(["yes"] * 40, pa.string_view()),
    "a view of bytes": pa.array([b"\xff\0"] * 40, pa.binary_view()),
    "a view of lists": pa.array([[1, 2]] * 40, pa.list_view(pa.int64())),
    "another library's": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([bytes(16)] * 40, pa.binary(16))
    ),
    "a time zone that there is not": pa.array([0] * 40, pa.timestamp("s", tz="No/Where")),
}


@pytest.mark.parametrize("kind", VALUES)
def test_parquet_with_columns_of_other_types(kind: str, tmp_path: Path):
    judgements, soft = tmp_path / "raw.parquet", tmp_path / "soft.parquet"
    rows = pa.table(judgement_rows())
    write_soft_digits(soft, soft_digits_table())
    whole = pq.read_table(soft).replace_schema_metadata()
    for column in rows.column_names:
        pq.write_table(
            rows.set_column(rows.column_names.index(column), column, VALUES[kind]), judgements
        )
        outcome(lambda: read_judgements(judgements), "raw.parquet")
    for column in whole.column_names:
        pq.write_table(
            whole.set_column(whole.column_names.index(column), column, VALUES[kind][:4]), soft
        )
        outcome(lambda: read_soft_digits(str(soft)), "soft.parquet")


def test_a_parquet_file_of_rows_without_end(tmp_path: Path):
    """The file is small: of equal rows it holds one."""
    path = tmp_path / "raw.parquet"
    part = pa.table({"annotator": pa.nulls(2**22, pa.int8())})
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(25):
            writer.write_table(part)
    assert path.stat().st_size < 2**20
    for read in (read_table, read_columns):
        assert "announces 104,857,600 rows" in refused(
            lambda read=read: read(path, ["annotator"]), "raw.parquet"
        )


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "empty"])
def test_a_table_that_is_not_there(name: str, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    refused(lambda: read_table(tmp_path / name, ["a"]), name)


def test_a_folder_in_the_place_of_a_file(tmp_path: Path):
    (tmp_path / "a.csv").mkdir()
    refused(lambda: read_table(tmp_path / "a.csv", ["a"]), "a.csv")


@pytest.mark.parametrize(
    "row",
    [
        3,
        [],
        None,
        {"uid": ["a"]},
        {"uid": {"a": 1}},
        {"label_counter": {"e": "many"}},
        {"label_counter": {"e": -1}},
        {"label_counter": {"e": 1.5}},
        {"label_counter": {"e": 1e400}},
        {"label_counter": {"e": float("nan")}},
        {"label_counter": {"e": 10**30}},
        {"label_counter": {"e": [1]}},
        {"label_counter": {"e": {"e": 1}}},
        {"label_counter": {"e": True}},
        {"label_counter": [1, 2]},
        {"example": "text"},
        {"example": {"premise": 3, "hypothesis": None}},
    ],
)
def test_json_lines_of_other_types(row: Any, tmp_path: Path):
    good = {"uid": "u", "label_counter": {"e": 3}, "example": {"premise": "A.", "hypothesis": "B."}}
    changed = {**good, "uid": "v", **row} if isinstance(row, dict) else row
    (tmp_path / "snli.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(changed)}\n")
    ended = outcome(lambda: read_subset(tmp_path / "snli.jsonl", NLI, NLI.template), "snli.jsonl")
    assert ended == ("result" if row == {"label_counter": {"e": True}} else "sentence")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000, "9" * 5000, '{"metrics": {"a": "b"}}', '{"metrics": {"a": [1]}}', '{"metrics": 3}', "[]", "null", '{"reason": 3}', '[{"epoch": "x"}]', "[3]", '{"epoch": 1}', ""])  # fmt: skip  # noqa: E501
def test_json_of_runs(content: str, tmp_path: Path):
    for name in ("results.json", "failed.json", "history.json"):
        (tmp_path / name).write_text(content)
    assert read_results(tmp_path) is None
    assert read_failure(tmp_path) is None
    if content != "[]":
        refused(lambda: read_history(tmp_path), "history.json")
