"""Inputs that stay in their file: the same batches as from memory, the same moments, bad files
refused, and more of them than memory.
"""

import ctypes
import gc
import multiprocessing
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file

from core.errors import InputError
from datamodules import OwnVotes, StochasticLabelSampling
from datamodules.custom.duplicates import first_equal
from datamodules.memmap_inputs import MemmapInputs, memmap_array, moments_of, refuse_unusual
from datamodules.preparation import Moments
from tests.waiting import HANGS


@pytest.fixture
def values() -> np.ndarray:
    result = np.random.default_rng(0).normal(3.0, 5.0, (200, 6)).astype(np.float32)
    result[:, 4] = 7.25  # never varies
    return result


@pytest.mark.parametrize(
    ("name", "kind"), [("e.npy", np.float32), ("e.npy", np.float16), ("e.safetensors", np.float64)]
)
def test_a_batch_is_what_indexing_would_give(
    values: np.ndarray, tmp_path: Path, name: str, kind: type
):
    if name.endswith(".npy"):
        np.save(tmp_path / name, values.astype(kind))
    else:
        save_file({"embeddings": values.astype(kind)}, tmp_path / name, metadata={"made": "here"})
    mapped, rows = memmap_array(tmp_path / name), np.random.default_rng(1).permutation(200)[:150]
    inputs, index = MemmapInputs(mapped, rows), torch.tensor([149, 0, 3, 3])
    assert not mapped.flags.owndata
    assert torch.equal(inputs(index), torch.from_numpy(values.astype(kind)[rows[index]]).float())
    assert torch.equal(inputs[3], inputs(index)[2])
    assert torch.equal(torch.cat(list(inputs.blocks())), inputs(torch.arange(len(inputs))))


def test_rows_are_asked_for_at_first_and_after_a_batch_had_to_wait_and_neighbours_as_one(
    values: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    np.save(tmp_path / "e.npy", values)
    asked, waits = [], iter([0, 0, 0, 0, 0, 5, 5, 5])  # before and after each batch
    monkeypatch.setattr("datamodules.memmap_inputs.COLD", 1)
    monkeypatch.setattr("datamodules.memmap_inputs._waits", lambda: next(waits))
    monkeypatch.setattr(
        "os.posix_fadvise", lambda file, start, length, advice: asked.append((start, length))
    )
    inputs, index = (
        MemmapInputs(memmap_array(tmp_path / "e.npy"), np.arange(200)),
        torch.tensor([7, 9, 8, 100, 7]),
    )
    for calls in (2, 2, 2, 4):
        assert torch.equal(inputs(index), torch.from_numpy(values)[index])
        assert len(asked) == calls
    start, width = (tmp_path / "e.npy").stat().st_size - values.nbytes, values.strides[0]
    assert asked == [(start + 7 * width, 3 * width), (start + 100 * width, width)] * 2


def test_moments_of_a_file_are_those_of_the_same_rows_in_memory(
    values: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("datamodules.memmap_inputs.AT_ONCE", 100)
    inputs, chosen = MemmapInputs(values, np.arange(200)), np.arange(3, 200, 2)
    for result, expected in zip(
        moments_of(inputs, chosen), Moments.of(torch.from_numpy(values[chosen])), strict=True
    ):
        torch.testing.assert_close(result, expected)
    assert torch.isfinite(
        MemmapInputs(values, np.arange(200), moments_of(inputs, chosen[:1]))(torch.arange(5))
    ).all()


def test_values_that_are_not_finite_are_refused_by_row(
    values: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("datamodules.memmap_inputs.AT_ONCE", 100)
    refuse_unusual(values, "e.npy")
    values[[40, 171], 2] = np.nan, np.inf
    with pytest.raises(
        InputError, match=r"e.npy has values that are not finite numbers in rows 40, 171; "
    ):
        refuse_unusual(values, "e.npy")


def test_files_that_are_no_embeddings(tmp_path: Path):
    path = tmp_path / "e.npy"
    for array, message in (
        (np.zeros(5, np.float32), r"holds float32 \[5\]; embeddings must be floats of the shape"),
        (np.zeros((2, 2), int), r"holds int64 \[2, 2\]"),
        (np.zeros((0, 2)), r"holds float64 \[0, 2\]"),
        (np.asfortranarray(np.ones((3, 2))), r"holds its columns one after the other"),
    ):
        np.save(path, array)
        with pytest.raises(InputError, match=message):
            memmap_array(path)
    np.save(path, np.array([[print]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a plain array of numbers"):
        memmap_array(path)
    np.save(path, np.zeros((50, 50)))
    whole = path.read_bytes()
    for content, message in (
        (
            whole[:900],
            f"holds {900 - (len(whole) - 50 * 50 * 8)} bytes of data, but its header announces "
            "20000; it was cut short",
        ),
        (b"", "is not an array in .npy format; nothing in it was loaded"),
        (b"\x93NUMPY", "is not an array in .npy format; nothing in it was loaded"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            memmap_array(path)
    path = tmp_path / "e.safetensors"
    save_file({"a": np.zeros((2, 2)), "b": np.zeros(2)}, path)
    with pytest.raises(InputError, match="holds 2 tensors; it must hold one"):
        memmap_array(path)
    save_file({"a": np.zeros((2, 2), np.int8)}, path)
    with pytest.raises(InputError, match="holds I8; embeddings must be F16, F32 or F64"):
        memmap_array(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="is not in safetensors format, or was cut short"):
        memmap_array(path)


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.float16])
def test_equal_rows_are_found_by_any_kind_of_number(kind: type):
    values = np.random.default_rng(2).integers(0, 2, (300, 7)).astype(kind)
    firsts = [
        next(other for other in range(300) if (values[other] == values[row]).all())
        for row in range(300)
    ]
    assert len(set(firsts)) < 300
    np.testing.assert_array_equal(first_equal(torch.from_numpy(values)), firsts)
    np.testing.assert_array_equal(first_equal(MemmapInputs(values, np.arange(300))), firsts)
    assert first_equal([torch.zeros(2)] if kind is None else iter(())) is None


ITEMS, FEATURES = 4096, 16384  # 256 MB, in a file that is sparse on the disk
BEYOND = 128 * 2**20  # bytes that the process may take beyond what it has


def write_much(root: Path) -> None:
    item = np.repeat(np.arange(ITEMS), 3)
    pq.write_table(
        pa.table({"item": item, "label": item * 7 % 5 + np.tile([0, 0, 1], ITEMS)}),
        root / "votes.parquet",
    )
    with open(root / "embeddings.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (ITEMS, FEATURES)}
        )
        start = file.tell()
        file.truncate(start + ITEMS * FEATURES * 4)
        for row in range(0, ITEMS, 8):
            file.seek(start + row * FEATURES * 4)
            file.write(np.full(4, row, "<f4").tobytes())


def train_under_a_limit(root: Path) -> None:
    torch.set_num_threads(1)
    gc.collect()  # what other tests left behind would be room
    ctypes.CDLL(None).malloc_trim(0)
    has = 1024 * next(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmData")
    )
    resource.setrlimit(resource.RLIMIT_DATA, (has + BEYOND, has + BEYOND))
    with pytest.raises(MemoryError):  # the limit holds
        np.load(root / "embeddings.npy")
    options = {
        "embeddings": "embeddings.npy",
        "root": str(root),
        "batch_size": 128,
        "standardize": False,
    }
    data = OwnVotes(
        "votes.parquet", "item", label="label", delivery=StochasticLabelSampling(), **options
    )
    data.setup()
    head = torch.nn.Linear(FEATURES, data.num_classes)
    optimizer, seen = torch.optim.SGD(head.parameters(), lr=1e-9), []
    for inputs, index in data.train_dataloader():
        assert torch.equal(inputs[:, 0], torch.where(index % 8 == 0, index, 0).float())
        torch.nn.functional.cross_entropy(
            head(inputs), data.bound.targets(0)[data.training_row[index]]
        ).backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append(index)
    assert torch.equal(torch.cat(seen).sort().values, torch.from_numpy(data.rows("train")))
    (root / "trained").touch()


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_an_epoch_over_embeddings_that_do_not_fit_into_the_limit_of_memory(tmp_path: Path):
    write_much(tmp_path)
    # with all imports done
    process = multiprocessing.get_context("fork").Process(
        target=train_under_a_limit, args=(tmp_path,)
    )
    process.start()
    process.join(HANGS)
    process.kill()
    assert (tmp_path / "trained").exists()
    assert process.exitcode == 0
