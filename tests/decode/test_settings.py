"""Settings that are no numbers, in a process of its own: where annotations are executed they are found before."""

import subprocess
import sys

SCRIPT = """
import torch
from heedful.decode.settings import Decoding, Sampling
from heedful.errors import InputError
for kind, name, value in (
    (Sampling, "temperature", "1"),
    (Sampling, "seed", None),
    (Decoding, "top_p", [0.5]),
    (Decoding, "beam", "5"),
    (Decoding, "longest", "all"),
    (Sampling, "top_k", 2.5),
    (Sampling, "seed", 1.0),
    (Decoding, "longest", 9.5),
):
    try:
        kind(**{name: value})
    except InputError as error:
        print(error, "-", error.fix)
Decoding(longest=None, temperature=1, beam=torch.arange(4).numpy()[2], forced_eos=True)
"""


def test_what_is_no_number_is_refused() -> None:
    made = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert made.stdout.splitlines() == [
        "temperature is '1' - give a number",
        "seed is None - give a number",
        "top_p is [0.5] - give a number",
        "beam is '5' - give a number",
        "longest is 'all' - give a number",
        "top_k is 2.5 - give a whole number",
        "seed is 1.0 - give a whole number",
        "longest is 9.5 - give a whole number",
    ]
