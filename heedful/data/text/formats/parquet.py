"""Parquet, the format of many published data sets."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from heedful.data.lines import most_unpacked, packed_size, read_bytes
from heedful.data.text.columns import Columns, Rows
from heedful.data.text.object_rows import object_rows
from heedful.errors import InputError, MissingError, pip_install

AT_ONCE = 100  # rows


def read_parquet(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the rows of two columns, or of two keys under "translation". Raises InputError or MissingError."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise MissingError(
            "reading Parquet needs the package pyarrow", where=str(path), fix=pip_install("datasets")
        ) from None
    try:
        table = ParquetFile(pyarrow.BufferReader(read_bytes(path)))
        refuse_unpacked(sum(_unpacked(table.metadata)), path)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(path, error, "download it again") from None
    if not table.metadata.num_rows:
        raise InputError("no rows", where=str(path), fix="give a table of two columns")
    rows = records(table.iter_batches(batch_size=AT_ONCE), path, "download it again")
    items = ((f"{path}: row {number}", row) for number, row in enumerate(rows, 1))
    return object_rows(items, source, target, described="Parquet, columns")


def _unpacked(metadata: Any) -> Iterator[int]:
    """Yields the bytes that each column of each group of rows unpacks to."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield from (group.column(i).total_uncompressed_size for i in range(group.num_columns))


def records(batches: Iterable[Any], path: Path, fix: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of Arrow's batches. Raises InputError where these are damaged, or hold far more text than their
    file has bytes: a short file may say a long text often."""
    import pyarrow

    size = 0
    try:
        for batch in batches:
            for begin in range(0, batch.num_rows, AT_ONCE):
                for row in batch.slice(begin, AT_ONCE).to_pylist():
                    size += _length(row)
                    yield row
                refuse_unpacked(size, path)
    except (pyarrow.ArrowException, OSError) as error:
        raise damaged(path, error, fix) from None


def refuse_unpacked(size: int, path: Path) -> None:
    """Raises InputError if a file unpacks to more than `most_unpacked`."""
    if size > (most := most_unpacked(packed_size(path))):
        raise InputError(f"more than {most:,} bytes when unpacked", where=str(path), fix="give it as .jsonl or .tsv")


def damaged(path: Path, error: Exception, fix: str) -> InputError:
    return InputError(f"damaged: {' '.join(str(error).split())[:200]}", where=str(path), fix=fix)


def _length(value: object) -> int:
    """Returns the number of characters, or so, that a value takes."""
    if isinstance(value, dict | list):
        return sum(map(_length, value.values() if isinstance(value, dict) else value))
    return len(value) if isinstance(value, str | bytes) else 8
