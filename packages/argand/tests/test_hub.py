"""argand.hub: files by URL, and functions of repositories; no network is asked."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

import argand as torch
from argand import hub

HUBCONF = '''
dependencies = ["json"]
from beside import WIDTH

def net(width=WIDTH, *, scale=1):
    """A net."""
    return width * scale

_hidden = net
number = 3
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "hub"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive as GitHub makes them, in the place of every repository's."""
    path = tmp_path / "archive.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("owner-name-0123abc/hubconf.py", HUBCONF)
        file.writestr("owner-name-0123abc/beside.py", "WIDTH = 7")
    monkeypatch.setattr(hub, "_archive_url", lambda owner, name, ref: path.as_uri())
    return path


def test_folders(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert hub.get_dir() == str(folder)
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hub.get_dir() == str(tmp_path / "cache" / "torch" / "hub")
    hub.set_dir(tmp_path / "mine")
    assert hub.get_dir() == str(tmp_path / "mine")


def test_downloads_are_whole_and_what_was_expected(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 1000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    hub.download_url_to_file(source.as_uri(), str(target), digest[:8], progress=False)
    assert target.read_bytes() == source.read_bytes()
    target.write_text("before")
    with pytest.raises(RuntimeError, match=f'expected "00", got "{digest}"'):
        hub.download_url_to_file(source.as_uri(), str(target), "00", progress=True)
    with pytest.raises(URLError):
        hub.download_url_to_file((tmp_path / "absent").as_uri(), str(target), progress=False)
    assert target.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "target"]


def test_state_dicts_are_downloaded_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"weight": torch.arange(3.0), "steps": 3}
    torch.save(state, tmp_path / "net.pt")
    digest = hashlib.sha256((tmp_path / "net.pt").read_bytes()).hexdigest()[:8]
    named = (tmp_path / "net.pt").rename(tmp_path / f"net-{digest}.pt")
    got = hub.load_state_dict_from_url(named.as_uri(), progress=False, check_hash=True)
    assert torch.equal(got["weight"], state["weight"]) and got["steps"] == 3
    assert (folder / "checkpoints" / named.name).exists()
    assert capsys.readouterr().out.count("Downloading") == 1
    url = named.as_uri()
    named.unlink()
    assert hub.load_state_dict_from_url(url, progress=False)["steps"] == 3
    assert capsys.readouterr().out == ""
    torch.save(state, tmp_path / "net-00000000.pt")
    wrong = (tmp_path / "net-00000000.pt").as_uri()
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.load_state_dict_from_url(wrong, str(tmp_path / "m"), check_hash=True, progress=False)
    got = hub.load_state_dict_from_url(
        wrong, str(tmp_path / "m"), map_location="meta", file_name="other.pt", progress=False
    )
    assert got["weight"].device.type == "meta" and (tmp_path / "m" / "other.pt").exists()


def test_state_dicts_run_no_code(tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return (Path(tmp_path / "ran").write_text, ("x",))

    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(torch.serialization.FileFormatError):
        hub.load_state_dict_from_url((tmp_path / "evil.pt").as_uri(), progress=False)
    assert not (tmp_path / "ran").exists()


def test_folders_of_functions(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text("WIDTH = 5")
    load = lambda *args, **kwargs: hub.load(str(tmp_path), *args, source="local", **kwargs)  # noqa: E731
    assert load("net") == 5 and load("net", 2, scale=3) == 6
    for model, error in (("number", RuntimeError), ("absent", RuntimeError), (3, ValueError)):
        with pytest.raises(error):
            load(model)
    (tmp_path / "hubconf.py").write_text("dependencies = ['json', 'no_such_package']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        load("net")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(tmp_path), "net", source="elsewhere")


def test_repositories_are_unpacked_once(
    folder: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"trust_repo": True, "skip_validation": True}
    assert hub.load("owner/name:v1/x", "net", scale=2, **options) == 14
    assert sorted(p.name for p in folder.iterdir()) == ["owner_name_v1_x", "trusted_list"]
    assert (folder / "trusted_list").read_text() == "owner_name\n"
    archive.unlink()
    assert hub.list("owner/name:v1/x") == ["net"]
    assert hub.help("owner/name:v1/x", "net") == "A net."
    assert capsys.readouterr().err.count("Using cache found in") == 2
    with pytest.raises(URLError):
        hub.load("owner/name:v1/x", "net", force_reload=True, **options)
    assert hub.load("owner/name:v1/x", "net", verbose=False) == 7


def test_archives_stay_in_their_folder(folder: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("owner-name/../../../evil.py", "")
    with pytest.raises(ValueError, match="escapes"):
        hub.list("owner/name:main", trust_repo=True, skip_validation=True)
    assert sorted(p.name for p in folder.iterdir()) == ["trusted_list"]


def test_code_runs_only_if_it_is_trusted(
    folder: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["", "perhaps", "y"])
    monkeypatch.setattr("builtins.input", lambda text: next(answers))
    with pytest.raises(RuntimeError, match="Untrusted"):
        hub.load("owner/name:main", "net", skip_validation=True)
    with pytest.raises(ValueError, match="perhaps"):
        hub.load("owner/name:main", "net", skip_validation=True)
    assert not (folder / "trusted_list").exists()
    assert hub.load("owner/name:main", "net", skip_validation=True) == 7
    assert hub.load("owner/name:other", "net", skip_validation=True) == 7


def test_refs_are_the_repositories_own(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(request: Any) -> Any:
        url = request if isinstance(request, str) else request.full_url
        asked.append(url)
        if url.startswith("file:"):
            return hub_urlopen(request)
        if "tree/main" in url:
            raise HTTPError(url, 404, "absent", None, None)  # type: ignore[arg-type]
        first = "branches" in url and "&page=1" in url
        entry = {"name": "master", "commit": {"sha": "0123abc"}}
        return BytesIO(json.dumps([entry] if first else []).encode())

    hub_urlopen = hub.urlopen
    monkeypatch.setattr(hub, "urlopen", answer)
    assert hub.load("owner/name", "net", trust_repo=True) == 7
    assert [url.split("/")[2] for url in asked[:2]] == ["github.com", "api.github.com"]
    with pytest.raises(ValueError, match="Cannot find forked"):
        hub.load("owner/name:forked", "net", trust_repo=True)

    def offline(request: Any) -> Any:
        raise URLError("offline")

    monkeypatch.setattr(hub, "urlopen", offline)
    assert hub.list("owner/name") == ["net"]
    with pytest.raises(RuntimeError, match="no internet connection"):
        hub.list("owner/other")
