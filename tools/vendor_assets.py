"""Fetch the dashboard's third-party files from their npm packages, with pinned versions and hashes, and their licences.

    python tools/vendor_assets.py            download, verify, write
    python tools/vendor_assets.py --check    verify the files in the tree; no network

The files are committed, so nobody needs this script to build, test or run groupmq. To take a newer version, change the
version here, run the script, review the changes, and copy the hashes that it prints.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import sys
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "src/groupmq/dashboard/static"
VENDOR = STATIC / "vendor"
TEST_VENDOR = ROOT / "tests/dashboard/browser/vendor"
MANIFEST = VENDOR / "vendor.json"
REGISTRY = "https://registry.npmjs.org"
BUDGET = 150_000
"""The most bytes under static/, each file gzipped, that a browser may load to open every page."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of a package: its path in the tarball, its name here, and its SHA-256."""

    source: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Package:
    """One npm package. `integrity` is the registry's SHA-512 of the tarball, in the form npm writes it."""

    name: str
    version: str
    licence: str
    integrity: str
    assets: tuple[Asset, ...]
    folder: Path = VENDOR

    @property
    def url(self) -> str:
        return f"{REGISTRY}/{self.name}/-/{self.name.rpartition('/')[2]}-{self.version}.tgz"


PACKAGES = (
    Package(
        "htmx.org",
        "4.0.0",
        "0BSD",
        "sha512-T/171FUY93Kdfp8t+DnHdk45QvKRiBhVhhrwSzrXgUi4pHKvhp77dUA/qg8FAjsFWPIHNbmUuIdCrcVHuiZWng==",
        (
            Asset("dist/htmx.min.js", "htmx.js", "e484d9171a9db30a39c8f16e3d709d4137f3211c659f8e6125816635033d593f"),
            Asset(
                "dist/ext/hx-sse.min.js",
                "htmx-sse.js",
                "8a834680c4000a9034d79228872372a92e140c810a075cb6d4a76690dfc13085",
            ),
            Asset("LICENSE", "htmx.LICENSE.txt", "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38"),
        ),
    ),
    Package(
        "uplot",
        "1.6.32",
        "MIT",
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        (
            Asset(
                "dist/uPlot.iife.min.js",
                "uplot.js",
                "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
            ),
            Asset(
                "dist/uPlot.min.css", "uplot.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
            ),
            Asset("LICENSE", "uplot.LICENSE.txt", "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"),
        ),
    ),
    Package(
        "@fontsource-variable/geist",
        "5.3.0",
        "OFL-1.1",
        "sha512-j0m+vLQuG5XAYoHtGCVu0spvlGreR3EzpECUVzkFmI1mTVnAO38l/NEPDCFgZ177JxzYJCLSmTQibIiYPilGrA==",
        (
            Asset(
                "files/geist-latin-wght-normal.woff2",
                "geist.woff2",
                "19f9c92546aa300c312235e3125af1b81394d8db9a4bc4a425cd5b641d2d54e1",
            ),
            Asset("LICENSE", "geist.LICENSE.txt", "71609cbb5c78b5870d712eab73a31d76622635c6ed034ab5cee3b9ecbda8685f"),
        ),
    ),
    Package(
        "@fontsource-variable/geist-mono",
        "5.3.0",
        "OFL-1.1",
        "sha512-vBbuwDEo9AkrqADMXOrlAR3DFcJi4/JxeuU43FoiQERnNwsfXNnvxvReZG02cQKmyk4DZkZdBZX3oTDvy2zBAw==",
        (
            Asset(
                "files/geist-mono-latin-wght-normal.woff2",
                "geist-mono.woff2",
                "684ad5b531f81d43c1e8c7038262d5db7cdc1f68006e04d6c7769efa8d33c8cc",
            ),
            Asset(
                "LICENSE", "geist-mono.LICENSE.txt", "cc815ed4fc045f0e991abb10395b7932bd028c6a067deb13316d6002105074e6"
            ),
        ),
    ),
    # For the tests only: never part of the wheel.
    Package(
        "axe-core",
        "4.14.0",
        "MPL-2.0",
        "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
        (
            Asset("axe.min.js", "axe.js", "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"),
            Asset("LICENSE", "axe.LICENSE.txt", "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e"),
            Asset(
                "LICENSE-3RD-PARTY.txt",
                "axe.LICENSE-3RD-PARTY.txt",
                "4f8563870d0fca38bbc3e00b6f670cb7fa9f380ba9f26a7f7d1184a6b18b1653",
            ),
        ),
        TEST_VENDOR,
    ),
)


def download(package: Package) -> bytes:
    with urllib.request.urlopen(package.url, timeout=60) as answer:
        tarball: bytes = answer.read()
    found = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    if found != package.integrity:
        raise SystemExit(f"{package.name} {package.version}: the tarball is {found}, expected {package.integrity}")
    return tarball


def unpack(package: Package, tarball: bytes) -> None:
    package.folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(tarball), mode="r:gz") as archive:
        for asset in package.assets:
            member = archive.extractfile(f"package/{asset.source}")
            if member is None:
                raise SystemExit(f"{package.name} {package.version}: {asset.source} is not a file")
            content = member.read()
            found = hashlib.sha256(content).hexdigest()
            if found != asset.sha256:
                raise SystemExit(f"{package.name}: {asset.source} has SHA-256 {found}, expected {asset.sha256}")
            (package.folder / asset.name).write_bytes(content)
            print(f"  {asset.name:<28} {len(content):>7,} bytes")


def write_manifest() -> None:
    """Write the list of packages in the wheel, for people and for a bill of materials."""
    entries = [
        {
            "package": package.name,
            "version": package.version,
            "licence": package.licence,
            "integrity": package.integrity,
            "files": {asset.name: asset.sha256 for asset in package.assets},
        }
        for package in PACKAGES
        if package.folder == VENDOR
    ]
    MANIFEST.write_text(json.dumps(entries, indent=2) + "\n")


def faults() -> list[str]:
    """The faults of the files in the tree: missing, changed, or not from a package."""
    found = []
    expected = {package.folder / asset.name: asset.sha256 for package in PACKAGES for asset in package.assets}
    for path, sha256 in expected.items():
        if not path.is_file():
            found.append(f"{path.relative_to(ROOT)} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            found.append(f"{path.relative_to(ROOT)} differs from its package")
    for folder in (VENDOR, TEST_VENDOR):
        for path in sorted(folder.glob("*")):
            if path not in expected and path != MANIFEST:
                found.append(f"{path.relative_to(ROOT)} belongs to no package")
    return found


def sizes() -> dict[str, int]:
    """Gzipped size of every file that the page can load."""
    served = (path for path in sorted(STATIC.rglob("*")) if path.is_file() and path.suffix not in (".txt", ".json"))
    return {str(path.relative_to(STATIC)): len(gzip.compress(path.read_bytes(), 9, mtime=0)) for path in served}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    if not arguments:
        for package in PACKAGES:
            print(f"{package.name} {package.version} ({package.licence})")
            unpack(package, download(package))
        write_manifest()
    wrong = faults()
    total = sum(sizes().values())
    if total > BUDGET:
        wrong.append(f"the assets are {total:,} bytes gzipped, more than {BUDGET:,}")
    print(*(wrong or [f"All files are as their packages have them; {total:,} bytes gzipped of {BUDGET:,}."]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
