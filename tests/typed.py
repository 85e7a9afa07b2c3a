"""The types of public functions' results. A test has mypy check this file; it is not executed."""
# mypy: disallow-any-generics, disallow-untyped-calls, warn-return-any

from typing import assert_type

import heedful
import heedful.core
from heedful.tasks.load import Loaded

assert_type(heedful.core.Mask(causal=True), heedful.core.Mask)
assert_type(heedful.load("runs/x"), Loaded)
assert_type(heedful.load("runs/x", heedful.Translator).translate("a"), str)
assert_type(heedful.load("runs/x", heedful.Translator).translate(["a"]), list[str])
assert_type(heedful.load("runs/x", heedful.TextClassifier, device="cpu").classify("a"), list[tuple[str, float]])
