"""The code of Python functions in a plan is a part of what made a stream's state."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.runtime.checkpoint.identity import Identity, changes_between, plan_identity
from tests.unit.model.declared import stream

pytestmark = pytest.mark.spark

MODULE = """
import pandas as pd
from pyspark.sql import functions as F

LIMIT = 5

def doubled(value):
    return value * 2

@F.udf("int")
def score(value):
    return doubled(value) + LIMIT

def halved(batches):
    for rows in batches:
        yield rows.assign(n=rows["n"] // 2)

def build(rows):
    numbers = rows.select(F.hash(rows.columns[0]).alias("n"))
    scored = numbers.select(score("n").alias("n"), F.udf(lambda v: v + 1, "int")("n").alias("m"))
    return scored.select("n").mapInPandas(halved, "n int").groupBy("n").count()
"""


def made_by(spark: SparkSession, folder: Path, text: str) -> Identity:
    """The identity of a stream whose build stands in a module of this text."""
    file = folder / f"build{len(list(folder.glob('*.py')))}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("a_build", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As an import does: the source of what a function names is found by its module.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        return plan_identity(spark, stream("test/scores", build=module.build), None)
    finally:
        del sys.modules[spec.name]


def test_another_body_of_a_function_is_another_state(spark: SparkSession, tmp_path: Path) -> None:
    before = made_by(spark, tmp_path, MODULE)

    assert made_by(spark, tmp_path, MODULE) == before
    for was, now, named in [
        ("+ LIMIT", "- LIMIT", "'score': code of score changed"),
        ("value * 2", "value * 3", "'score': code of doubled changed"),
        ("LIMIT = 5", "LIMIT = 6", "'score': constant LIMIT was LIMIT = 5 and is LIMIT = 6"),
        ("v + 1", "v + 2", "code of build.<locals>.<lambda> changed"),
        ("// 2", "// 3", "'halved': code of halved changed"),
    ]:
        after = made_by(spark, tmp_path, MODULE.replace(was, now))
        (change,) = changes_between(before.facts, after.facts)
        assert named in change
