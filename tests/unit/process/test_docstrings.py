"""The examples in the docstrings of the public names run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = {
    "rivermark.process.api.side_outputs": 1,
    "rivermark.process.api.state": 1,
    "rivermark.process.keyed": 8,
    "rivermark.process.patterns.process": 8,
    "rivermark.process.windows.assigners": 4,
    "rivermark.process.windows.window_process": 18,
    "rivermark.testing.row_comparison": 2,
    "rivermark.testing.waiting": 1,
}


@pytest.mark.parametrize(("module", "examples"), MODULES.items())
def test_the_examples_run(module: str, examples: int) -> None:
    names = vars(importlib.import_module(module))
    # With it annotations would be texts, looked up in the module, where the example's are not.
    globs = {name: value for name, value in names.items() if name != "annotations"}
    ran = doctest.testmod(importlib.import_module(module), globs=globs)

    assert (ran.failed, ran.attempted) == (0, examples)
