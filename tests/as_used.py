"""The output of programs that run without runtime checks of annotations: in a process of their own, which several
share."""

import functools
import json
import subprocess
import sys

TOLD = """
import contextlib, io, json, sys, traceback
told = []
for script in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            exec(script, {"__name__": "__main__"})
        except Exception:
            print(traceback.format_exc())
    told.append(said.getvalue().splitlines())
json.dump(told, sys.stdout)
"""


@functools.cache
def printed(*scripts: str) -> list[list[str]]:
    """The lines that each script prints, and its traceback if it fails; they run one after the other."""
    done = subprocess.run([sys.executable, "-c", TOLD], input=json.dumps(scripts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found
