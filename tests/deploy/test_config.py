"""Goal: `smile.toml` is read as written, and every mistake in it is told with file, key, reason and remedy."""

from pathlib import Path

import pytest

from smile.deploy.config import BrokerSettings, ConfigError, find_config, parse_config, parse_duration_us, read_config

PATH = Path("project/smile.toml")
FULL = """
program = "tickets.mpl"
[brokers.west]
address = "tcp://127.0.0.1:7070"
http = "127.0.0.1:8070"
data = "w"
[brokers.hub]
address = "tcp://localhost:7071"
[pins]
Sold = "hub"
[log]
sync = "interval"
keep = "checkpoint"
[checkpoint]
every = "500 ms"
[spark]
archive = "history"
conf = { x = 3 }
"""


def test_everything_arrives_with_its_defaults() -> None:
    config = parse_config(PATH, FULL)
    assert config.required_program() == Path("project/tickets.mpl")
    assert list(config.brokers) == ["west", "hub"]
    assert config.broker("west") == BrokerSettings(
        "west",
        "tcp://127.0.0.1:7070",
        Path("project/w"),
        "127.0.0.1:8070",
        "interval",
        "checkpoint",
        500_000,
        archive=Path("project/history"),
    )
    assert config.broker("hub").data == Path("project/data/hub")
    assert config.broker("hub").http is None
    assert config.pins == {"Sold": "hub"}
    assert config.spark == {"archive": "history", "conf": {"x": 3}}
    assert config.addresses == {"west": "tcp://127.0.0.1:7070", "hub": "tcp://localhost:7071"}


def test_an_empty_file_has_safe_defaults() -> None:
    config = parse_config(PATH, '[brokers.b]\naddress = "tcp://[::1]:7070"')
    assert (config.broker("b").sync, config.broker("b").keep) == ("always", "all")
    with pytest.raises(ConfigError, match=r"smile\.toml: program: is missing; add a line such as"):
        config.required_program()


BROKER = '[brokers.b]\naddress = "tcp://127.0.0.1:1"\n'
KEY = "smile1-" + "A" * 86


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("programm = 'x'", "programm", "did you mean `program`?"),
        ("[broker.b]", "broker", "did you mean `brokers`?"),
        ("[brokers.b]\nadress = 'x'", "brokers.b.adress", "did you mean `address`?"),
        ("[brokers.b]", "brokers.b.address", 'add address = "tcp://127.0.0.1:7070"'),
        ("[brokers.b]\naddress = 7070", "brokers.b.address", "7070 (int); give text in quotes"),
        ("[brokers.b]\naddress = 'udp://x:1'", "brokers.b.address", "is no address; write it like"),
        ("[brokers.b]\naddress = 'tcp://x:99999'", "brokers.b.address", "is no address"),
        ("[brokers.b]\naddress = 'tcp://10.0.0.1:7'", "brokers.b.address", "`smile keys`"),
        (BROKER + "listen = 'tcp://0.0.0.0:1'", "brokers.b.address", "`smile keys`"),
        (BROKER + "listen = 'x'", "brokers.b.listen", "is no address"),
        (BROKER + "http = '8080'", "brokers.b.http", "is not host:port; write it like"),
        ("[brokers]\nb = 1", "brokers.b", "write [brokers.b] on a line of its own"),
        ("[brokers.'a b']\naddress = 'tcp://127.0.0.1:1'", "brokers.a b", "is no name for a broker"),
        (BROKER + "[brokers.c]\naddress = 'tcp://127.0.0.1:1'", "brokers.c.address", "also that of b"),
        (BROKER + "[brokers.c]\naddress = 'tcp://127.0.0.1:2'\ndata = 'data/b'", "brokers.c.data", "also that of b"),
        (BROKER + "[pins]\nV = 'bb'", "pins.V", "did you mean `b`?"),
        (BROKER + "[pins]\nV = 'other'", "pins.V", "brokers are b"),
        ("[log]\nsync = 'alway'", "log.sync", "did you mean `always`?"),
        ("[log]\nkeep = 7", "log.keep", "one of all, checkpoint, archive"),
        ('[log]\nkeep = "archive"', "log.keep", 'add archive = "archive" to the section [spark]'),
        ("[checkpoint]\nevery = '10 parsecs'", "checkpoint.every", 'write it like "10 s"'),
        ("[checkpoint]\nevery = '0 s'", "checkpoint.every", 'write it like "10 s"'),
        (BROKER + "[security]\nsecret = 's'", "security.allowed", "`smile keys allow`"),
        (BROKER + "[security]\nsecret = 's'\nallowed = 'a'", "brokers.b.address", "append ?key=smile1-"),
    ],
)
def test_mistakes_name_file_key_and_remedy(text: str, key: str, says: str) -> None:
    with pytest.raises(ConfigError) as found:
        parse_config(PATH, text)
    assert found.value.key == key
    assert str(found.value).startswith(f"{PATH}: {key}: ")
    assert says in str(found.value)


def test_security_names_files_per_broker() -> None:
    files = 'secret = "keys/{broker}.secret"\nallowed = "a"\nclient = "me"'
    text = f'[brokers.b]\naddress = "tcp://10.0.0.1:7?key={KEY}"\n[security]\n{files}'
    config = parse_config(PATH, text)
    security = config.broker("b").security
    assert security is not None
    assert (security.secret, security.allowed) == (Path("project/keys/b.secret"), Path("project/a"))
    assert config.client_keys == Path("project/me")


def test_where_others_find_it_may_not_be_where_it_listens() -> None:
    files = '[security]\nsecret = "{broker}.secret"\nallowed = "a"'
    text = f'[brokers.b]\naddress = "tcp://10.0.0.1:7?key={KEY}"\nlisten = "tcp://0.0.0.0:7"\n{files}'
    config = parse_config(PATH, text)
    assert config.addresses == {"b": f"tcp://10.0.0.1:7?key={KEY}"}
    assert config.broker("b").address == "tcp://0.0.0.0:7"
    other = config.broker_at("c", "tcp://0.0.0.0:8")
    assert other.security is not None
    assert (other.security.secret, other.data) == (Path("project/c.secret"), Path("project/data/c"))


def test_unknown_broker_is_told_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match="did you mean `west`"):
        parse_config(PATH, FULL).broker("wets")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "`smile init` makes a project"),
        (b"x = ", "is not TOML"),
        (b"\xff", "not UTF-8 text"),
        (b"#" * (2**20 + 1), "larger than"),
    ],
)
def test_unreadable_files(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "smile.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        read_config(path)


def test_the_nearest_file_above_is_found(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_config(tmp_path / "a" / "b") != tmp_path / "smile.toml"
    (tmp_path / "smile.toml").write_text("")
    assert find_config(tmp_path / "a" / "b") == tmp_path / "smile.toml"


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("10 s", 10_000_000), ("1.5s", 1_500_000), ("7 us", 7), ("2 min", 120_000_000), ("1 h", 3_600_000_000)],
)
def test_durations(text: str, microseconds: int) -> None:
    assert parse_duration_us(text) == microseconds


@pytest.mark.parametrize("text", ["", "s", "10", "-1 s", "1 day", "1e3 s"])
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration_us(text) is None
