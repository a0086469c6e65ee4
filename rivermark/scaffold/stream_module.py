"""A guess as the module of an ingest, with comments on what a person should look at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from rivermark.model.errors import WrongUse
from rivermark.scaffold.guess import ContractGuess, FieldGuess
from rivermark.scaffold.sample import Sample

WIDTH: Final = 100


def module_text(
    name: str, place: str, sample: Sample, guess: ContractGuess, domain: str | None
) -> str:
    """The module that declares ingest `name`; `domain` is "MODULE:NAME" of a Domain that is there.

    Raises WrongUse where the sample has neither a time nor a key.
    """
    if not guess.event_time and not guess.keys:
        raise WrongUse(
            f"{place} has no column that is a time in each row, and none that names a row: an "
            "ingest needs one of them, the time for events, the key for what is known of things"
        )
    group = name.partition("/")[0]
    shared = domain.partition(":")[2] if domain else group.upper()
    body = [*_ingest(name, shared, place, sample, guess)]
    if domain is None:
        start = guess.first.date() if guess.first else None
        day = f"date({start.year}, {start.month}, {start.day})" if start else "date(2000, 1, 1)"
        body = [f"{shared}: Final = Domain({_text(group)}, first_day={day})", "", *body]
    head = f'"""{_words(name)}, as proposed from {guess.rows} rows of {json.dumps(place)[1:-1]}."""'
    return "\n".join([head, "", *_imports(sample, guess, domain, "\n".join(body)), "", *body, ""])


def _imports(sample: Sample, guess: ContractGuess, domain: str | None, body: str) -> list[str]:
    used = ("Contract", "Domain", "Field", "expect", "readers")
    ours = [name for name in used if f"{name}." in body or f"{name}(" in body]
    times = [name for name in ("date", "timedelta") if f"{name}(" in body]
    lines = [f"from datetime import {', '.join(times)}"] if times else []
    lines += ["from typing import Final", "", f"from rivermark import {', '.join(ours)}"]
    lines.append(f"from rivermark.sources import {sample.source[0]}")
    if domain:
        module, _, shared = domain.partition(":")
        lines += ["", f"from {module} import {shared}"]
    return lines


def _ingest(name: str, shared: str, place: str, sample: Sample, guess: ContractGuess) -> list[str]:
    notes = [f"Proposed from {guess.rows} rows: required is what was never empty in them."]
    if guess.event_time and not guess.keys:
        notes.append("No column names a row: repeats are not known as such.")
    if guess.other_times:
        notes.append(f"Event time: {guess.event_time}, or one of {', '.join(guess.other_times)}?")
    minutes = int(guess.lateness.total_seconds()) // 60
    lines = [*_comments(notes, ""), f"{constant_of(name)}: Final = {shared}.ingest("]
    lines += [f"    {_text(name)},", f"    description={_text(_words(name) + '.')},"]
    lines += _call(f"source={sample.source[0]}", sample.source[1], 4)
    if guess.event_time:
        lines.append(f"    lateness=timedelta(minutes={minutes}),")
    else:
        lines += ['    kind="lookup",', f"    keys={_tuple(guess.keys)},"]
    lines.append("    contract=Contract(")
    if guess.event_time:
        lines.append(f"        event_time={_text(guess.event_time)},")
    if guess.event_time and guess.keys:
        lines.append(f"        keys={_tuple(guess.keys)},")
    lines.append("        fields=(")
    for each in guess.fields:
        lines += [*_comments([each.note], " " * 12), *_call("Field", _arguments(each), 12)]
    lines += ["        ),", "    ),"]
    if guess.event_time:
        lines.append(f"    days={_text(guess.event_time)},")
    if guess.event_time and guess.keys:
        unique = _text(guess.keys[0]) if len(guess.keys) == 1 else _tuple(guess.keys)
        lines.append(f"    expect=[expect.unique({unique})],")
    return [*lines, ")"]


def _arguments(guess: FieldGuess) -> list[str]:
    words = [_text(guess.name), _text(guess.type)]
    words += [f"names={_tuple(guess.names)}"] if guess.names else []
    words += ["required=True"] if guess.required else []
    words += [f"nulls={_tuple(guess.nulls)}"] if guess.nulls else []
    return words + ([f"read={guess.read}"] if guess.read else [])


def _call(name: str, arguments: Sequence[str], indent: int) -> list[str]:
    """A call on one line, or with a line for each argument, as formatters have it."""
    line = f"{' ' * indent}{name}({', '.join(arguments)}),"
    if len(line) <= WIDTH:
        return [line]
    deeper = [f"{' ' * (indent + 4)}{argument}," for argument in arguments]
    return [f"{' ' * indent}{name}(", *deeper, f"{' ' * indent}),"]


def _comments(notes: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}# {note[:1].upper()}{note[1:]}" for note in notes if note]


def constant_of(name: str) -> str:
    """The name of the ingest in its module: `ORDERS` of `cafe/orders`."""
    return "_".join(name.split("/")[1:]).upper()


def _words(name: str) -> str:
    return name.rpartition("/")[2].replace("_", " ").capitalize()


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(map(_text, names))}{',' if len(names) == 1 else ''})"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
