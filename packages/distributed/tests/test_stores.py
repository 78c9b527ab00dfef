"""The stores: one behaviour, three homes."""

from __future__ import annotations

import contextlib
import datetime
import socket
import threading
import time
from pathlib import Path

import pytest

import argand_distributed as dist

SHORT = datetime.timedelta(milliseconds=300)


def tcp() -> dist.TCPStore:
    return dist.TCPStore("127.0.0.1", 0, is_master=True)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dist.Store:
    if request.param == "hash":
        return dist.HashStore()
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if request.param == "tcp":
        return tcp()
    return dist.PrefixStore("inner", dist.PrefixStore("outer", tcp()))


def test_every_store_behaves_alike(store: dist.Store) -> None:
    store.set("a", "text")
    store.set("b", b"\x00\xff" * 1000)
    assert store.get("a") == b"text"
    assert store.get("b") == b"\x00\xff" * 1000
    assert store.check(["a", "b"])
    assert not store.check(["a", "missing"])
    assert [store.add("n", 5), store.add("n", -7)] == [5, -2]
    assert store.get("n") == b"-2"
    assert store.compare_set("c", "", "first") == b"first"
    assert store.compare_set("c", "other", "second") == b"first"
    assert store.compare_set("c", "first", "second") == b"second"
    assert store.compare_set("missing", "expected", "x") == b"expected"
    assert not store.check(["missing"])
    assert store.num_keys() == 4
    assert store.delete_key("a")
    assert not store.delete_key("a")
    assert store.multi_get(["c", "n"]) == [b"second", b"-2"]
    store.multi_set(["x", "y"], [b"1", "2"])
    assert store.get("y") == b"2"
    with pytest.raises(dist.DistStoreError, match="is no integer"):
        store.add("c", 1)


def test_waiting(store: dist.Store) -> None:
    began = time.monotonic()
    with pytest.raises(dist.DistStoreError, match=r"waited 0\.3\d* s for '.*late'"):
        store.wait(["late"], SHORT)
    assert time.monotonic() - began < 3
    timer = threading.Timer(0.1, store.set, ("late", b"now"))
    timer.start()
    assert store.get("late") == b"now"
    timer.join()
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    with pytest.raises(dist.DistStoreError):
        store.get("never")


def test_tcp_serves_many_clients_at_once() -> None:
    master = tcp()
    clients = [dist.TCPStore("127.0.0.1", master.port) for _ in range(8)]
    threads = [
        threading.Thread(target=lambda c=c: [c.add("n", 1) for _ in range(100)]) for c in clients
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert master.get("n") == b"800"


def test_tcp_ignores_strangers_and_says_who_does_not_answer() -> None:
    master = tcp()
    with socket.create_connection(("127.0.0.1", master.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(10) == b""
    client = dist.TCPStore("127.0.0.1", master.port)
    client.set("k", "v")
    port = master.port
    del master
    with pytest.raises(dist.DistNetworkError):
        client._set_answer_limit(SHORT)
        client.get("k")
    with pytest.raises(dist.DistNetworkError, match=f"cannot reach 127.0.0.1:{port}"):
        dist.TCPStore("127.0.0.1", port, timeout=SHORT)


def test_tcp_port_in_use_is_an_error() -> None:
    master = tcp()
    with pytest.raises(dist.DistNetworkError, match=f"cannot listen on port {master.port}"):
        dist.TCPStore("127.0.0.1", master.port, is_master=True)


def test_the_last_file_store_removes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store"
    stores = [dist.FileStore(str(path), 2) for _ in range(2)]
    stores.pop()
    assert path.exists()
    stores.pop()
    assert not path.exists()
    with pytest.raises(dist.DistStoreError, match="FileStore: cannot open"):
        dist.FileStore(str(tmp_path / "no" / "folder"), 1)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://x", "expected env://, tcp://host:port or file:///path"),
        ("tcp://host", "expected tcp://host:port"),
        ("file://relative?rank=0&world_size=1", "expected file:///absolute/path"),
        ("tcp://127.0.0.1:1?world_size=2", "got no rank"),
    ],
)
def test_addresses_that_say_too_little(url: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dist.init_process_group("gloo", url)
