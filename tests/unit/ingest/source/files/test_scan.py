"""What reading a file to its end says of it: a digest, and lines that are too long."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyarrow import fs

from rivermark.ingest.source.files import file_probe, listing
from rivermark.ingest.source.files.file_probe import FileProbe, probe_file
from rivermark.ingest.source.files.listing import digest_of, scanned
from rivermark.sources import FileSource

JSON = FileSource(folder="in")
READY = FileProbe("ready", "json")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (b"", True),
        (b"12345678\n1234567890\n", True),
        (b"12345678901\n", False),
        (b"1\r12345678901\r1", False),
        (b"1\n12345678901", False),
        (b"1\n" * 40, True),
    ],
)
def test_n040_a_line_beyond_the_bound_quarantines_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, fits: bool, packed: bool
) -> None:
    monkeypatch.setattr(listing, "LONGEST_LINE", 10)
    for module in (listing, file_probe):
        monkeypatch.setattr(module, "HEAD_BYTES", 4)
    path = tmp_path / ("a.json.gz" if packed else "a.json")
    path.write_bytes(gzip.compress(text) if packed else text)

    file = fs.LocalFileSystem(), str(path)
    # A packed text is unpacked once, when it is probed.
    probed = probe_file(*file, path.stat().st_size, JSON) if packed else READY
    probe = scanned(probed, *file)

    assert probe.status == ("ready" if fits else "rejected")
    assert (probe.reason or "file_line_too_long").startswith("file_line_too_long")
    assert probe.digest == digest_of(*file)


def test_a_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    files = fs.LocalFileSystem()
    digests = []
    for content in (b"a" * 3_000_000, b"a" * 2_999_999 + b"b", b"a" * 3_000_000):
        (tmp_path / "a").write_bytes(content)
        digests.append(digest_of(files, str(tmp_path / "a")))
    assert digests[0] == digests[2] != digests[1]
    with pytest.raises(OSError, match="FileNotFoundError"):
        digest_of(files, str(tmp_path / "gone"))
