"""Build the driver's class-data archive: `python -m rivermark.setup.class_archive`.

Most of a short Spark run's time goes into loading classes. Java can write the classes that a run
loaded into an archive, and map it into memory at the next start. The archive fits one JVM and one
class path: it is built again when Java, PySpark, the JARs or the run that is recorded change. It is
an optimisation only, so a failure here is reported and is no error.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rivermark.setup.ivy import java, spark_jars
from rivermark.setup.jars import CACHE, sha256

JOB = Path(__file__).with_name("class_archive_job.py")
FOLDER = CACHE / "cds"
PATIENCE_SECONDS = 600


def build() -> None:
    """Record one run and keep the archive under its name only when it is whole."""
    archive, size, stamp = (FOLDER / name for name in ("spark.jsa", "spark.size", "spark.stamp"))
    jars = sorted((CACHE / "jars" / "delta").glob("*.jar"))
    wanted = fingerprint(jars)
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(
        "Recording the classes of a short run, for quicker starts (once, about a minute)",
        file=sys.stderr,
        flush=True,
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in (stamp, size, archive):
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="recording-", dir=FOLDER) as scratch:
        recorded = Path(scratch) / "spark.jsa"
        if complaint := record(recorded, jars, Path(scratch)):
            print(
                "No class archive could be made; everything works without it, only starts take "
                f"about twice as long. Remove {FOLDER} to have it tried again. The reason:\n"
                f"{complaint}",
                file=sys.stderr,
            )
        else:
            recorded.rename(archive)
            # By this a driver knows that the archive is whole.
            size.write_text(str(archive.stat().st_size))
    # After a failure as well: the same set-up would fail in the same way each time.
    stamp.write_text(wanted)


def record(archive: Path, jars: list[Path], scratch: Path) -> str:
    """Run the job in a JVM that writes the archive when it ends; return what went wrong."""
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        "spark.driver.extraJavaOptions": " ".join(
            [f"-XX:ArchiveClassesAtExit={archive}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        ),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    log = scratch / "log"
    with log.open("w") as output:
        # A session of its own, so that the JVM goes too when the job has to be ended.
        job = subprocess.Popen(
            [sys.executable, str(JOB), str(scratch), json.dumps(settings)],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=scratch,
            start_new_session=True,
        )
        try:
            code: int | str = job.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = f"no end after {PATIENCE_SECONDS} s"
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    if code == 0 and archive.is_file():
        return ""
    return f"exit code {code}\n{log.read_text(errors='replace')[-1500:]}"


def fingerprint(jars: list[Path]) -> str:
    """All that an archive depends on: the JVM, each JAR with its place and time, and the job."""
    command = [java(), "-version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    paths = [*jars, *sorted(spark_jars().glob("*.jar"))]
    parts = [version, sha256(JOB), *(f"{path} {path.stat().st_mtime_ns}" for path in paths)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


if __name__ == "__main__":
    build()
