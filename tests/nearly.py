"""Records that are compared: numbers nearly, all else exactly."""

from typing import Any

import pytest


def like(found: Any) -> Any:
    """Numbers nearly so, all else exactly."""
    if isinstance(found, float):
        return pytest.approx(found, abs=2e-4)
    if isinstance(found, dict):
        return {key: like(value) for key, value in found.items()}
    return [like(each) for each in found] if isinstance(found, list | tuple) else found
