"""Goal: `smile broker` says in one line why it cannot start, and harms no broker that runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.log.sqlite import LogDirectory
from smile.broker import LOGS_FOLDER, SERVING_FILE
from smile.cli.exits import Exit
from smile.deploy.config import ConfigError, parse_config
from smile.deploy.deployment import FILE_NAME
from smile.local import free_ports
from tests.measures import PATIENCE_S

ROOT = Path(__file__).parents[2]


def broker(data: Path, *options: str) -> tuple[int, str]:
    """Exit code and complaints: a process of its own, since a broker takes its process over."""
    address = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    command = [sys.executable, "-m", "smile", "broker", "b", "--data", str(data), "--listen", address, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE_S, check=False)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_where_the_data_should_be(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    code, said = broker(Path(f"{tmp_path}/file{below}"))
    assert code == Exit.USAGE
    assert said.startswith(f"smile broker b: {tmp_path}/file")


@pytest.mark.parametrize("http", ["8080", "127.0.0.1:x", "127.0.0.1:65536", ":8080"])
def test_http_needs_host_and_port(tmp_path: Path, http: str) -> None:
    code, said = broker(tmp_path, "--http", http)
    assert code == Exit.USAGE
    assert said == f"smile: --http {http}: not host:port; write it like 127.0.0.1:8080\n"
    text = f'[brokers.b]\naddress = "tcp://127.0.0.1:7070"\nhttp = "{http}"\n'
    with pytest.raises(ConfigError, match="is not host:port"):
        parse_config(tmp_path / "smile.toml", text)


def test_ports_end_somewhere(tmp_path: Path) -> None:
    """ZeroMQ would listen at 34463."""
    code, said = broker(tmp_path, "--listen", "tcp://127.0.0.1:99999")
    assert code == Exit.USAGE
    assert "there is no port 99999" in said


def test_a_second_one_on_the_same_data_leaves_the_first_its_sign(tmp_path: Path) -> None:
    first = LogDirectory(tmp_path / LOGS_FOLDER)
    (tmp_path / SERVING_FILE).write_text("{}")
    code, said = broker(tmp_path)
    first.close()
    assert code == Exit.USAGE
    assert "in use by another process" in said
    assert (tmp_path / SERVING_FILE).exists()


def test_a_damaged_deployment_gets_a_remedy_that_is_possible(tmp_path: Path) -> None:
    """A broker that does not start cannot be deployed to."""
    (tmp_path / FILE_NAME).write_text("{")
    code, said = broker(tmp_path)
    assert code == Exit.USAGE
    assert said.rstrip().endswith("put back a copy: every broker of the deployment has the same file")
