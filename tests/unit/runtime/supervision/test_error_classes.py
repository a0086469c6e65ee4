"""What an error means: in a sentence, and whether a restart can help."""

from __future__ import annotations

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, StreamingQueryException
from pyspark.sql import DataFrame

from rivermark.lake.full_disk import is_disk_full
from rivermark.model.errors import DeclarationError, RivermarkError, ServiceFailed, TableDamaged
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.supervision.error_classes import REFUSALS, Fault, explain


@pytest.mark.parametrize("kind", REFUSALS)
def test_what_the_platform_itself_refuses_is_told_as_it_is_and_not_tried_again(
    kind: type[Exception],
) -> None:
    fault = explain(kind("the reason and the way out"))

    assert fault.message == "the reason and the way out"
    assert not fault.restartable


@pytest.mark.parametrize(
    ("text", "told", "restartable"),
    [
        ("[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] x", "made by another declaration", False),
        ("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] x", "missing or damaged", False),
        ("[DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] x", "created again", False),
        ("[DELTA_VERSIONS_NOT_CONTIGUOUS] x", "is gone", False),
        ("[DELTA_SCHEMA_CHANGED] x", "taken up by the next start", True),
        ("Failed to read log file /c/offsets/4. Incomplete log file", "is damaged", False),
        ("Invalid UUID string: x", "file of checkpoint its checkpoint is damaged", False),
        (
            "file:/t/a.parquet is not a Parquet file. Expected magic number",
            "table or of its",
            False,
        ),
        ("Kernel error: Json error: Truncated record", "rivermark fsck says which", False),
        ("CRC checksum verification failed", "a file of a table or of its log is damaged", False),
        ("something else", "something else", True),
    ],
)
def test_an_engine_error_is_told_in_our_words(text: str, told: str, restartable: bool) -> None:
    fault = explain(RuntimeError(text))

    assert told in fault.message
    assert fault.restartable is restartable


@pytest.mark.parametrize(
    ("text", "restartable"),
    [
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nowhere` cannot be resolved",
            False,
        ),
        ("[DELTA_TABLE_NOT_FOUND] Delta table `/lake/a` doesn't exist", True),
    ],
)
def test_b011_what_spark_cannot_plan_is_not_tried_again_unless_something_is_missing(
    text: str, restartable: bool
) -> None:
    fault = explain(AnalysisException(text))

    assert text[:20] in fault.message
    assert fault.restartable is restartable


@pytest.mark.parametrize("error", [TypeError("build() takes 1 positional argument"), KeyError("x")])
def test_b011_an_error_of_a_build_is_one_of_the_declaration(error: Exception) -> None:
    def build() -> DataFrame:
        raise error

    with pytest.raises(
        DeclarationError, match=f"'test/rides': its build raises {type(error).__name__}"
    ) as it:
        apply_build("test/rides", build)
    assert not explain(it.value).restartable


def test_b011_a_bridge_or_a_disk_that_fails_in_a_build_is_none_of_the_declaration() -> None:
    def build() -> DataFrame:
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(ConnectionRefusedError):
        apply_build("test/rides", build)


def test_a_stack_is_no_sign_and_is_not_shown() -> None:
    text = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file /a.json\n"
        "\tat org.apache.hadoop.fs.ChecksumFileSystem.open(ChecksumFileSystem.java:631)\n"
        '  File "door.py", line 3, in write\n'
        "Caused by: java.io.EOFException: too short\n"
        "\t... 25 more\n"
    )
    fault = explain(RuntimeError(text))

    assert fault.restartable
    assert fault.message == (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file /a.json | "
        "Caused by: java.io.EOFException: too short"
    )


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("Answer from Java side is empty"), Py4JError("gone")]
)
def test_a_bridge_that_answers_no_more_means_that_the_engine_is_gone(error: Exception) -> None:
    fault = explain(error)

    assert "the Spark session is gone: its JVM has ended" in fault.message
    assert fault.restartable


def refused_by_the_bridge() -> Exception:
    """What PySpark raises where its JVM was killed a moment ago: a real connection to nobody."""
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=1, eager_load=False))
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except Exception as error:
        return error
    raise AssertionError


def test_r12_a_connection_that_is_refused_while_a_build_is_made_is_the_engines_end() -> None:
    def build() -> DataFrame:
        try:
            raise refused_by_the_bridge()
        except Exception as error:
            raise ParseException(f"Unable to parse datatype. {error}") from error

    with pytest.raises(Py4JNetworkError) as it:
        apply_build("test/rides", build)
    fault = explain(it.value)

    assert "the Spark session is gone: its JVM has ended" in fault.message
    assert fault.restartable


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "refused"), EOFError("cut")])
def test_r12_a_connection_to_anything_else_says_nothing_of_the_engine(error: Exception) -> None:
    fault = explain(error)

    assert fault.restartable
    assert not fault.session_lost


@pytest.mark.parametrize(
    "error",
    [
        ServiceFailed("PostgreSQL cannot write: No space left on device", "db:5432"),
        RivermarkError("the broker says: No space left on device"),
        RuntimeError("the web service says: Disk quota exceeded"),
    ],
)
def test_r21_a_full_disk_of_a_service_is_not_ours(error: Exception) -> None:
    fault = explain(error)

    assert fault.message == str(error)
    assert fault.restartable
    assert not is_disk_full(error)


def test_r21_a_full_disk_of_a_service_is_not_ours_where_a_worker_says_it() -> None:
    text = (
        "[STREAM_FAILED] Query terminated\nTraceback (most recent call last):\n"
        "rivermark.model.errors.ServiceFailed: db:5432: could not extend file: "
        "No space left on device\n"
    )

    fault = explain(StreamingQueryException(text))

    assert fault.message == "db:5432: could not extend file: No space left on device"
    assert fault.restartable


def test_r12_what_several_fail_by_has_one_cause() -> None:
    damaged = TableDamaged.of("a", "/lake/a/x.parquet", "is cut")

    assert explain(damaged).cause == "damaged:/lake/a/x.parquet"
    assert explain(ServiceFailed("no", "db:5432")).cause == "service:db:5432"
    assert explain(OSError(28, "No space left on device", "/")).cause == (
        explain(OSError(28, "No space left on device", "/etc")).cause
    )


def test_an_error_without_a_message_is_named() -> None:
    assert explain(KeyboardInterrupt()).message == "KeyboardInterrupt"


@pytest.mark.parametrize(("kind", "restartable"), [("ProcessError", True), ("Misuse", False)])
def test_an_error_of_a_process_function_is_told_as_the_worker_said_it(
    kind: str, restartable: bool
) -> None:
    said = "process 'Rule' failed on key 7, event Ride(7): ValueError: no (rule.py:3 in on_event)"
    text = (
        "[STREAM_FAILED] Query terminated with exception: Job aborted due to stage failure\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        f"rivermark.process.errors.{kind}: {said}\n"
        "\n\tat org.apache.spark.api.python.BasePythonRunner\n"
    )

    assert explain(RuntimeError(text)) == Fault(said, restartable)


def test_of_a_misuse_within_a_handler_the_error_that_names_key_and_event_is_told() -> None:
    misuse = "'lost' is not a side output of the process; declared are: late"
    whole = f"process 'Alerts' failed on key 7, event Ride(7): Misuse: {misuse} (alerts.py:9)"
    text = (
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        f"rivermark.process.errors.Misuse: {misuse}\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        f"rivermark.process.errors.ProcessError: {whole}\n"
    )

    assert explain(RuntimeError(text)) == Fault(whole, True)


def test_a_file_that_only_a_cause_names_is_named() -> None:
    text = (
        "[FAILED_READ_FILE.NO_HINT] An input cannot be read.\nmore\nand more\n"
        "Caused by: file:/lake/tables/a/part-0.snappy.parquet is not a Parquet file\n"
        "\tat org.apache.parquet\n"
        "Caused by: java.io.IOException: CRC checksum verification failed"
    )
    message = explain(Exception(text)).message
    assert "rivermark fsck" in message
    assert ": /lake/tables/a/part-0.snappy.parquet. [" in message
