"""Values checked against type hints, and in a sentence what is expected where one does not fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeGuard, Union, get_args, get_origin

from rivermark.model.nearest import did_you_mean

WORDS: Final[dict[Any, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Decimal: "a Decimal",
    timedelta: "a duration such as timedelta(minutes=5)",
    date: "a day such as date(2024, 1, 31)",
    datetime: "a time with its zone such as datetime(2024, 1, 31, tzinfo=UTC)",
}
CALLABLE: Final = get_origin(Callable[[], None])
Fits = Callable[[object], bool]
LONGEST: Final = 60
"""Characters of a value that a sentence quotes."""


def fitting(hint: Any) -> Fits:
    """True if a value is of a type; where a hint says nothing that can be checked, every one is."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        options = [fitting(each) for each in arguments]
        return lambda value: any(fits(value) for fits in options)
    if origin is Annotated:
        return fitting(arguments[0])
    if origin is Literal:
        return lambda value: any(type(value) is type(each) and value == each for each in arguments)
    if origin in (tuple, Sequence):
        item = fitting(arguments[0])
        return lambda value: _lists(value, origin) and all(map(item, value))
    if origin is CALLABLE:
        return lambda value: callable(value) and not isinstance(value, type)
    if origin is type:
        return lambda value: isinstance(value, type)
    if _is_mapping(hint):
        inner = fitting(arguments[1])
        return lambda value: isinstance(value, Mapping) and all(map(inner, value.values()))
    if also := getattr(origin, "also", None):
        inner = fitting(arguments[0])
        return lambda value: isinstance(value, also) or inner(value)
    return _fitting_class(hint)


def _fitting_class(hint: Any) -> Fits:
    if hint is None:
        return lambda value: value is None
    if hint is Any or not isinstance(hint, type):
        return lambda _: True
    if hint is float:
        return lambda value: isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if hint is date:
        return lambda value: isinstance(value, date) and not isinstance(value, datetime)
    if _is_protocol(hint):
        return lambda value: not isinstance(value, type) and _is_subclass(type(value), hint)
    return lambda value: isinstance(value, hint)


def _lists(value: object, kind: Any) -> TypeGuard[Collection[object]]:
    """Returns True if a value is a tuple, or for a sequence any collection, but no text."""
    if kind is tuple:
        return isinstance(value, tuple)
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def _is_protocol(hint: type) -> bool:
    return bool(getattr(hint, "_is_protocol", False))


def _is_subclass(cls: type, of: type) -> bool:
    """Returns True if a class is of another one; of a protocol, whether it has what that names."""
    if _is_protocol(of):
        return all(hasattr(cls, name) for name in vars(of) if not name.startswith("_"))
    return issubclass(cls, of)


def misfit(value: object, hint: Any) -> str:
    """The words behind the name of a value that does not fit: what it is, what is expected."""
    options = [each for each in _options(hint) if each is not NoneType]
    for each in options:
        if (origin := get_origin(each)) in (tuple, Sequence):
            [item, *_] = get_args(each)
            if _lists(value, origin):
                place, wrong = next((n, v) for n, v in enumerate(value) if not fitting(item)(v))
                return f"[{place}]{misfit(wrong, item)}"
            if fitting(item)(value):
                one = "one text" if isinstance(value, str) else f"one {type(value).__name__}"
                return f" is {one} and not a tuple; write a comma behind it, as in (..., )"
        if isinstance(value, Mapping) and _is_mapping(each):
            name = next(n for n, v in value.items() if not fitting(get_args(each)[1])(v))
            return f"[{name!r}]{misfit(value[name], get_args(each)[1])}"
    return f" is {_shown(value)}; expected {_expected(value, options)}"


def fault_of(name: str, value: object, hint: Any) -> str:
    """The fault of an argument's value, as a sentence."""
    item, _, text = misfit(value, hint).partition(" is ")
    return f"`{name}{item}` is {text}"


def _options(hint: Any) -> list[Any]:
    """The alternatives of a hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return [option for each in arguments for option in _options(each)]
    if origin is Annotated:
        return _options(arguments[0])
    if also := getattr(origin, "also", None):
        return [*_options(arguments[0]), also]
    return [hint]


def _is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _expected(value: object, options: Sequence[Any]) -> str:
    """The value that would fit, with advice where the mistake is a common one."""
    literals = [a for each in options if get_origin(each) is Literal for a in get_args(each)]
    words = _joined([*map(repr, literals), *(w for w in map(_words, options) if w)])
    if isinstance(value, str) and literals:
        return words + did_you_mean(value, map(str, literals))
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if any(get_origin(each) is CALLABLE for each in options):
        if hasattr(value, "on_event"):
            return f"{words}: a process function is run by run_process({name})"
        if name == "Column":
            return f"{words} that returns it: write `lambda: ` before it"
    classes = tuple(each for each in options if isinstance(each, type))
    if isinstance(value, type) and any(_is_subclass(value, each) for each in classes):
        return f"an object of that class: {name}()"
    if isinstance(value, str) and not set(classes) & set(WORDS):
        return f"{words}: the object itself, not its name"
    return words


def _words(hint: Any) -> str:
    """A type in words; empty for literals, which are listed by themselves."""
    if hint in WORDS:
        return WORDS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ""
    if origin in (tuple, Sequence):
        items = _joined([_words(each) for each in _options(arguments[0])])
        return f"a {'tuple' if origin is tuple else 'list'} of {items}"
    if origin is CALLABLE:
        return "a function"
    name = getattr(origin or hint, "__name__", str(hint))
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _joined(words: Sequence[str]) -> str:
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, str):
        short = value if len(value) <= LONGEST else f"{value[:LONGEST]}..."
        return f"the text {short!r}"
    if value is None or isinstance(value, bool | int | float | Decimal | date | timedelta):
        return repr(value)
    return _words(type(value))
