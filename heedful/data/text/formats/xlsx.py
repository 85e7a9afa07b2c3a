"""Excel's tables: the first sheet that has anything on it."""

import io
import zipfile
import zlib
from pathlib import Path

from heedful.data.lines import read_bytes
from heedful.data.text.columns import Columns, Rows
from heedful.errors import InputError

# What the library lets through of a packed file, and of the XML in it, that is damaged.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, KeyError, ValueError, TypeError, AttributeError, IndexError,
    RuntimeError,
)  # fmt: skip


def read_xlsx(path: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """The rows of two columns, as of any other table. Raises InputError or MissingError."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    from heedful.data.text.rows import table_rows

    try:
        book = load_workbook(io.BytesIO(read_bytes(path)), read_only=True, data_only=True)
        for sheet in book.worksheets:
            cells = [
                (number, ["" if cell is None else str(cell) for cell in row])
                for number, row in enumerate(sheet.iter_rows(values_only=True), 1)
            ]
            if any(any(row) for _, row in cells):
                break
        else:
            raise InputError("no sheet with anything on it", where=str(path), fix="give a table of two columns")
    except (InvalidFileException, *DAMAGED) as error:
        what = f"not a workbook that can be read: {' '.join(str(error).split()) or type(error).__name__}"
        raise InputError(what, where=str(path), fix="save it again as .xlsx, or as .csv") from None
    widest = max(max((i for i, cell in enumerate(row, 1) if cell), default=0) for _, row in cells)
    filled = ((number, [*row, *[""] * widest][:widest] if any(row) else []) for number, row in cells)
    return table_rows(path, filled, source, target, f"a sheet {sheet.title!r}")
