from pathlib import Path
from typing import Any

import pytest

from rivermark.runtime.spark.jvm import JarsMissing, driver_options, jar_set
from rivermark.setup.jars import cache_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIVERMARK_CACHE", str(tmp_path))
    for jar in ("delta/delta-storage-1.jar", "delta/delta-spark-1.jar", "kafka/clients-2.jar"):
        file = tmp_path / "jars" / jar
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


def java_flags(options: dict[str, str]) -> list[str]:
    return options["spark.driver.extraJavaOptions"].split()


def keep_archive(cache: Path, *, whole: bool) -> Path:
    archive = cache / "cds" / "spark.jsa"
    archive.parent.mkdir()
    archive.write_bytes(b"classes")
    archive.with_name("spark.size").write_text("7" if whole else "8")
    return archive


def test_the_class_path_lists_the_delta_jars_in_one_fixed_order(cache: Path) -> None:
    delta = cache / "jars" / "delta"

    path = driver_options("short")["spark.driver.extraClassPath"]

    assert path == f"{delta / 'delta-spark-1.jar'}:{delta / 'delta-storage-1.jar'}"


@pytest.mark.parametrize(
    ("kind", "collector", "compilers"),
    [("short", "Serial", ["-XX:TieredStopAtLevel=1"]), ("long", "Parallel", [])],
)
def test_a_short_run_has_the_quick_compiler_and_one_collector_thread_a_long_one_all(
    cache: Path, kind: Any, collector: str, compilers: list[str]
) -> None:
    flags = java_flags(driver_options(kind))

    assert [flag for flag in flags if flag.startswith("-XX:TieredStopAtLevel")] == compilers
    assert f"-XX:+Use{collector}GC" in flags


@pytest.mark.parametrize(("heap", "first"), [("4g", "3072m"), ("512m", "384m")])
def test_a_large_run_begins_with_most_of_its_heap(cache: Path, heap: str, first: str) -> None:
    flags = java_flags(driver_options("large", heap=heap))

    assert "-XX:+UseParallelGC" in flags
    assert f"-Xms{first}" in flags
    assert not [flag for flag in java_flags(driver_options("long")) if flag.startswith("-Xms")]


def test_the_jvm_lives_in_utc(cache: Path) -> None:
    assert "-Duser.timezone=UTC" in java_flags(driver_options("long"))


def test_the_heap_is_a_spark_setting_because_spark_refuses_it_among_the_java_options(
    cache: Path,
) -> None:
    options = driver_options("long", heap="512m")

    assert options["spark.driver.memory"] == "512m"
    assert not [flag for flag in java_flags(options) if flag.startswith("-Xmx")]


@pytest.mark.parametrize("heap", ["", "2", "2G", "0g", "1.5g", "2g -Dx=y", "-1g"])
def test_a_heap_that_is_no_size_is_refused(cache: Path, heap: str) -> None:
    with pytest.raises(ValueError, match="a heap is a number"):
        driver_options("short", heap=heap)


def test_a_whole_class_archive_is_used_but_never_required(cache: Path) -> None:
    archive = keep_archive(cache, whole=True)

    flags = java_flags(driver_options("short"))

    assert f"-XX:SharedArchiveFile={archive}" in flags
    assert "-Xshare:auto" in flags


@pytest.mark.parametrize("cut_short", [False, True])
def test_an_absent_archive_is_not_named_nor_a_cut_one_because_it_would_kill_the_jvm(
    cache: Path, cut_short: bool
) -> None:
    if cut_short:
        keep_archive(cache, whole=False)

    assert not [flag for flag in java_flags(driver_options("short")) if "SharedArchive" in flag]


def test_connectors_are_shipped_and_leave_the_class_path_of_the_archive_alone(cache: Path) -> None:
    plain = driver_options("short")
    with_kafka = driver_options("short", connectors=("kafka",))

    assert str(cache / "jars" / "kafka" / "clients-2.jar") in with_kafka["spark.jars"].split(",")
    assert with_kafka["spark.driver.extraClassPath"] == plain["spark.driver.extraClassPath"]


def test_missing_jars_are_named_with_the_command_that_fetches_them(cache: Path) -> None:
    with pytest.raises(JarsMissing, match=r"'broker' in .*: run `rivermark setup broker`"):
        jar_set("broker")
    for jar in (cache / "jars" / "delta").iterdir():
        jar.unlink()
    with pytest.raises(JarsMissing, match=r"'delta' in .*: run `rivermark setup`"):
        jar_set("delta")


def test_the_cache_lies_beside_the_code_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RIVERMARK_CACHE", raising=False)

    assert cache_folder().name == ".cache"
    assert (cache_folder().parent / "rivermark" / "runtime" / "spark" / "jvm.py").is_file()
