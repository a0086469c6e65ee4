"""Rules in SQL over batches: the names of those that rows break, in the driver and in workers."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pytest

from rivermark import Contract, Field, Rule
from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.parse.rules import WHOLE, ContractRules, rule_faults
from rivermark.model.contract import FLAGS

CONTRACT: Final = Contract(
    fields=(Field("id", "long", required=True),),
    rules=(
        Rule("large", "id > 2", "flag", "Above two."),
        Rule("old_file", "contains(_file, 'old')", "flag", "By its name."),
        Rule("third", "id = 3", "quarantine", "The third."),
    ),
)


def rows(item: str) -> pa.Table:
    """Four rows, the last of them malformed; `item` is how the items of lists are called."""
    lists = pa.list_(pa.field(item, pa.string()))
    return pa.table(
        {
            "id": pa.array([1, 2, 3, 3], pa.int64()),
            "_file": ["old", "new", "old", "old"],
            FLAGS: pa.array([[], [], [], []], lists),
            PROBLEMS: pa.array([[], ["early"], [], ["malformed"]], lists),
            WHOLE: pa.array([True, True, True, False]),
        }
    )


# Spark calls the items of a list otherwise than Arrow does.
@pytest.mark.parametrize("item", ["item", "element"])
def test_names_are_added_in_the_order_of_the_rules(item: str) -> None:
    before = rows(item)

    after = ContractRules(CONTRACT).added(before)

    assert after.schema.equals(before.schema)
    assert after[FLAGS].to_pylist() == [["old_file"], [], ["large", "old_file"], []]
    assert after[PROBLEMS].to_pylist() == [[], ["early"], ["third"], ["malformed"]]


def test_parts_of_a_batch_are_named_as_the_whole() -> None:
    made = [ContractRules(CONTRACT).added(rows("element").slice(4 - n)) for n in (2, 0, 2)]

    assert {part.schema for part in made} == {rows("element").schema}
    assert [names for part in made for names in part[FLAGS].to_pylist()] == [
        ["large", "old_file"],
        [],
        ["large", "old_file"],
        [],
    ]


def test_each_faulty_rule_is_named_with_its_place() -> None:
    faulty = Contract(
        fields=(Field("id", "long", required=True),),
        rules=(
            Rule("odd", "ide % 2 = 1", "flag", "Odd."),
            Rule("large", "id > 2", "flag", "Above two."),
            Rule("sum", "id + 1", "flag", "No condition."),
        ),
    )

    odd, total = map(str, rule_faults("test/rows", faulty))

    assert "stream 'test/rows': rule 'odd': there is no column 'ide' (at character 1)" in odd
    assert "stream 'test/rows': rule 'sum': it is no condition: it is BIGINT" in total
    assert all("test_rules.py, line " in fault for fault in (odd, total))
