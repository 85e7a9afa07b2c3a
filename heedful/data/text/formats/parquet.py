"""Parquet, the format of many published data sets."""

from pathlib import Path

from heedful.data.lines import read_bytes
from heedful.data.text.columns import Columns, Rows
from heedful.data.text.object_rows import object_rows
from heedful.errors import InputError, MissingError, pip_install


def read_parquet(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the rows of two columns, or of two keys under "translation". Raises InputError or MissingError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingError(
            "reading Parquet needs the package pyarrow", where=str(path), fix=pip_install("datasets")
        ) from None
    try:
        table = parquet.read_table(pyarrow.BufferReader(read_bytes(path)))
    except (pyarrow.ArrowException, OSError) as error:
        what = f"damaged: {' '.join(str(error).split())[:200]}"
        raise InputError(what, where=str(path), fix="download it again") from None
    rows = ((f"{path}: row {number}", row) for number, row in enumerate(table.to_pylist(), 1))
    if not table.num_rows:
        raise InputError("no rows", where=str(path), fix="give a table of two columns")
    return object_rows(rows, source, target, described="Parquet, columns")
