"""Downloads Debian packages by apt-get, checks and unpacks them, and renames their libraries; run by debian_libraries.bzl.

Packages are pinned by version and hash and kept in a shared cache. Libraries get the names and run paths that a wheel
needs: a hash in the file's name and SONAME, so that no other copy in the process is taken for them, and $ORIGIN as run path.
Needs the standard library, apt-get, dpkg-deb and a patchelf.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


class FetchError(Exception):
    """The message says what is missing and what to do."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha256: str

    @staticmethod
    def parse(text: str) -> Package:
        name, version, sha256 = text.split("=")
        return Package(name, version, sha256)


def run(command: list[str], cwd: Path) -> None:
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise FetchError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")


def apt_download(packages: list[Package], folder: Path) -> None:
    """Into `folder`, by the machine's package lists; where those are missing or old, by lists of our own (no root needed)."""
    names = [f"{p.name}={p.version}" for p in packages]
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names]
    try:
        run(command, folder)
        return
    except FetchError:
        pass
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={folder}"]
    own += ["-o", "Acquire::Check-Valid-Until=false", "-o", "APT::Sandbox::User=root"]
    run(["apt-get", "-q", *own, "update"], folder)
    run(["apt-get", "-q", *own, "download", *names], folder)


def fetch(packages: list[Package], cache: Path) -> dict[str, Path]:
    """The packages' files, by name."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise FetchError(
            "apt-get and dpkg-deb are needed, of Debian 12 (bookworm) or with its lists"
        )
    cache.mkdir(parents=True, exist_ok=True)
    files = {p.name: cache / f"{p.name}-{p.sha256}.deb" for p in packages}
    missing = [p for p in packages if not files[p.name].exists()]
    if missing:
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            apt_download(missing, Path(folder))
            for package in missing:
                (found,) = Path(folder).glob(f"{package.name}_*.deb")
                digest = hashlib.sha256(found.read_bytes()).hexdigest()
                if digest != package.sha256:
                    raise FetchError(
                        f"{package.name} {package.version}: got sha256 {digest}, expected {package.sha256}"
                    )
                os.replace(found, files[package.name])
    return files


def needed(library: Path) -> list[str]:
    done = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "(NEEDED)" in line]
    return [line.split("[")[1].split("]")[0] for line in lines]


def rename_libraries(root: Path, libraries: dict[str, str], patchelf: str, out: Path) -> None:
    """Copies libraries (SONAME -> new name) from an unpacked tree and lets them find one another under the new names."""
    for soname, name in libraries.items():
        (source,) = [path for path in root.rglob(soname) if path.parent.name != "private"]
        target = out / name
        shutil.copyfile(source, target)
        target.chmod(0o755)
        replaced = [x for old in needed(source) if old in libraries for x in (old, libraries[old])]
        command = [patchelf, "--set-soname", name, "--set-rpath", "$ORIGIN"]
        for i in range(0, len(replaced), 2):
            command += ["--replace-needed", replaced[i], replaced[i + 1]]
        run([*command, str(target)], out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--patchelf", required=True)
    parser.add_argument("--package", action="append", type=Package.parse, required=True)
    parser.add_argument("--library", action="append", required=True, help="SONAME=new name")
    arguments = parser.parse_args()
    libraries = dict(text.split("=") for text in arguments.library)
    try:
        files = fetch(arguments.package, arguments.cache)
        with tempfile.TemporaryDirectory() as folder:
            for file in files.values():
                run(["dpkg-deb", "-x", str(file), folder], Path(folder))
            root = Path(folder)
            (arguments.out / "licenses").mkdir(parents=True)
            for name in files:
                shutil.copyfile(
                    root / "usr/share/doc" / name / "copyright",
                    arguments.out / "licenses" / name,
                )
            shutil.copytree(root / "usr" / "include", arguments.out / "include")
            rename_libraries(root, libraries, arguments.patchelf, arguments.out)
    except FetchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
