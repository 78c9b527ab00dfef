"""Models that others publish: state dicts by URL, and functions of a repository's `hubconf.py`.

Loading a state dict runs no code (`argand.load`); loading a repository runs its code, and asks before it does so for the first time.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from argand.serialization import load as load_file

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-bfd8deac.safetensors
_TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_CHUNK = 128 * 1024
_hub_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of what has been downloaded: that of `set_dir`, else `$TORCH_HOME/hub`, where TORCH_HOME is `$XDG_CACHE_HOME/torch` by default."""
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder of what will be downloaded."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download a file. Where it fails, no file is made or changed.

    Args:
        url: where it is.
        dst: the file to make, with its folder.
        hash_prefix: with what the SHA-256 of its contents must begin.
        progress: show a progress bar, where tqdm is installed.

    Raises:
        RuntimeError: the contents are others.
        URLError: there is no such file.
    """
    dst = os.path.expanduser(dst)
    partial = f"{dst}.{uuid.uuid4().hex}.partial"
    sha256 = hashlib.sha256()
    try:
        with (
            urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source,
            open(partial, "xb") as file,
            _progress_bar(source.headers.get("Content-Length"), progress) as advance,
        ):
            while chunk := source.read(_CHUNK):
                file.write(chunk)
                sha256.update(chunk)
                advance(len(chunk))
        digest = sha256.hexdigest()
        if hash_prefix is not None and not digest.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
        os.replace(partial, dst)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


@contextmanager
def _progress_bar(length: str | None, shown: bool) -> Iterator[Any]:
    try:
        from tqdm import tqdm
    except ImportError:
        shown = False
    if not shown:
        yield lambda count: None
        return
    total = None if length is None else int(length)
    with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024) as bar:
        yield bar.update


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Load a file as `argand.load` does, downloaded unless it is in the folder already.

    Args:
        url: where it is.
        model_dir: the folder; `checkpoints` in `get_dir()` by default.
        map_location: see `argand.load`.
        progress: show a progress bar.
        check_hash: the SHA-256 of its contents must begin with the last part of its name, as in `resnet18-bfd8deac.safetensors`.
        file_name: its name in the folder; that of the URL by default.
        weights_only: accepted; loading is always safe.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    file = os.path.join(folder, name)
    if not os.path.exists(file):
        sys.stdout.write(f'Downloading: "{url}" to {file}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, file, found.group(1) if found else None, progress=progress)
    return load_file(file, map_location=map_location, weights_only=weights_only)


# Repositories ------------------------------------------------------------------------------------


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of a repository's `hubconf.py`.

    Args:
        repo_or_dir: "owner/name" or "owner/name:ref" of GitHub's, or a folder.
        model: the function's name.
        args, kwargs: its arguments.
        source: "github" or "local".
        trust_repo: True: run the repository's code; False: ask; "check": ask unless that was answered before.
        force_reload: download it though it is there.
        verbose: say where it is, if it is not downloaded.
        skip_validation: do not ask GitHub whether the ref is the repository's own, and no fork's.

    Returns:
        What the function returns.

    Raises:
        ValueError: another source.
        RuntimeError: there is no such function, or a package that it depends on is not installed.
    """
    if source.lower() not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir
    if source.lower() == "github":
        folder = _repository(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    with _hubconf(folder) as module:
        return _entry(module, model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
    verbose: bool = True,
) -> Any:
    """The names of the functions in a repository's `hubconf.py`; arguments as those of `load`."""
    folder = _repository(github, force_reload, trust_repo, verbose, skip_validation)
    with _hubconf(folder) as module:
        return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str = "check",
) -> str | None:
    """The docstring of a function in a repository's `hubconf.py`; arguments as those of `load`."""
    folder = _repository(github, force_reload, trust_repo, True, skip_validation)
    with _hubconf(folder) as module:
        doc: str | None = _entry(module, model).__doc__
        return doc


@contextmanager
def _hubconf(folder: str) -> Iterator[ModuleType]:
    """The module `hubconf.py` of a folder, in which it may import what lies beside it."""
    spec = importlib.util.spec_from_file_location("hubconf", os.path.join(folder, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


def _entry(module: ModuleType, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    wanted = getattr(module, "dependencies", None) or ()
    missing = [package for package in wanted if importlib.util.find_spec(package) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    entry = getattr(module, model, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return entry


def _repository(
    github: str, force_reload: bool, trust: bool | str, verbose: bool, skip_validation: bool
) -> str:
    """The folder of a repository, which is downloaded unless it is there."""
    os.makedirs(get_dir(), exist_ok=True)
    owner, name, ref = _parse_repository(github)
    folder = os.path.join(get_dir(), f"{owner}_{name}_{ref.replace('/', '_')}")
    _check_trusted(owner, name, folder, trust)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_ref(owner, name, ref)
    archive = f"{folder}.zip"
    url = _archive_url(owner, name, ref)
    sys.stdout.write(f'Downloading: "{url}" to {archive}\n')
    try:
        download_url_to_file(url, archive, progress=False)
    except HTTPError as error:
        if error.code != 300:  # the name of a branch and of a tag
            raise
        download_url_to_file(
            _archive_url(owner, name, f"refs/heads/{ref}"), archive, progress=False
        )
    try:
        _unpack(archive, folder)
    finally:
        os.remove(archive)
    return folder


def _archive_url(owner: str, name: str, ref: str) -> str:
    return f"https://github.com/{owner}/{name}/zipball/{ref}"


def _unpack(archive: str, folder: str) -> None:
    """Put the only folder of an archive in the place of `folder`."""
    work = f"{folder}.{uuid.uuid4().hex}.partial"
    try:
        with zipfile.ZipFile(archive) as file:
            for member in file.namelist():
                place = os.path.normpath(os.path.join(work, member))
                if not Path(place).is_relative_to(work):
                    raise ValueError(f"Archive entry escapes target directory: {member}")
            file.extractall(work)
        (inside,) = os.listdir(work)
        if os.path.exists(folder):
            shutil.rmtree(folder)
        os.rename(os.path.join(work, inside), folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _parse_repository(github: str) -> tuple[str, str, str]:
    """Owner, name and ref, which is `main` where there is such a branch, else `master`."""
    repository, _, ref = github.partition(":")
    owner, name = repository.split("/")
    if ref:
        return owner, name, ref
    try:
        with urlopen(f"https://github.com/{repository}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        if error.code != 404:
            raise
        return owner, name, "master"
    except URLError as error:
        for known in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{known}")):
                return owner, name, known
        raise RuntimeError(
            "It looks like there is no internet connection and the "
            f"repo could not be found in the cache ({get_dir()})"
        ) from error


def _check_ref(owner: str, name: str, ref: str) -> None:
    """Raise ValueError unless the repository itself, and no fork, has a branch, tag or commit at their head of that name."""
    headers = {"Accept": "application/vnd.github.v3+json"}
    if token := os.environ.get("GITHUB_TOKEN"):
        headers["Authorization"] = f"token {token}"
    for kind in ("branches", "tags"):
        page = 1
        while True:
            url = f"https://api.github.com/repos/{owner}/{name}/{kind}?per_page=100&page={page}"
            with urlopen(Request(url, headers=headers)) as answer:
                entries = json.load(answer)
            if any(e["name"] == ref or e["commit"]["sha"].startswith(ref) for e in entries):
                return
            if not entries:
                break
            page += 1
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{owner}/{name}. "
        "If it's a commit from a forked repo, please call hub.load() with forked repo directly."
    )


def _check_trusted(owner: str, name: str, folder: str, trust: bool | str) -> None:
    """Ask whether the repository's code may run, unless that is known. The answer is kept."""
    kept = Path(get_dir(), "trusted_list")
    known = kept.read_text().split() if kept.exists() else []
    repository = f"{owner}_{name}"
    trusted = repository in known or os.path.isdir(folder) or owner in _TRUSTED_OWNERS
    if trust is False or (trust == "check" and not trusted):
        answer = input(
            f"The repository {repository} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        )
        if answer.lower() in ("n", "no", ""):
            raise RuntimeError("Untrusted repository.")
        if answer.lower() not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not trusted:
        with open(kept, "a") as file:
            file.write(repository + "\n")
