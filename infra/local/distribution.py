"""Elasticsearch's own files: the build that its tests use, from Maven, and a JDK to run it on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from glob import glob
from pathlib import Path

from infra.local.processes import FOLDER, Unavailable, alone

VERSION = "9.3.2"
ARTIFACT = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{VERSION}:zip"
OLDEST_JAVA = 21
# Runtimes cut down to less than this do not start it.
MODULES = {"java.management", "java.net.http", "jdk.attach", "jdk.unsupported"}
JVMS = ("/usr/lib/jvm/*", "/opt/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")
DOWNLOAD_SECONDS = 900
INSTEAD = "an Elasticsearch 9 of your own does as well, by its address"


def find_java() -> Path:
    """A JDK that is new and whole enough."""
    named = [Path(os.environ[name]) for name in ("ES_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)]
    for home in [*named, *(Path(found) for pattern in JVMS for found in sorted(glob(pattern), reverse=True))]:
        try:
            release = (home / "release").read_text()
        except OSError:
            continue
        version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
        modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
        if version and int(version[1]) >= OLDEST_JAVA and modules and set(modules[1].split()) >= MODULES:
            return home
    raise Unavailable(
        f"Elasticsearch needs a full JDK {OLDEST_JAVA} or newer and none was found: install one, "
        f"or name it by ES_JAVA_HOME; {INSTEAD}"
    )


def fetch() -> Path:
    """Its unpacked folder, made the first time. What was downloaded stays in Maven's own repository (~/.m2)."""
    home = FOLDER / f"elasticsearch-{VERSION}"
    if home.exists():
        return home
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"Elasticsearch comes from Maven and there is no `mvn` here: install Maven; {INSTEAD}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = FOLDER / f"elasticsearch-{VERSION}.new"
    with alone(FOLDER / f"elasticsearch-{VERSION}.lock"):
        if home.exists():  # another was quicker
            return home
        shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
        folder.mkdir()
        try:
            _unpack(_download(maven, folder), folder)
            (script,) = folder.glob("elasticsearch-*/bin/elasticsearch")
            script.parents[1].rename(home)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return home


def _download(maven: str, folder: Path) -> Path:
    command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    archives = list(folder.glob("*.zip"))
    if run.returncode or not archives:
        said = " ".join((run.stdout + run.stderr).split())[:300]
        raise Unavailable(f"Maven did not fetch {ARTIFACT}: {said}; {INSTEAD}")
    return archives[0]


def _unpack(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as content:
        for entry in content.infolist():
            path = Path(content.extract(entry, folder))
            mode = entry.external_attr >> 16
            if mode:  # zipfile forgets what may be executed
                path.chmod(mode | 0o444 | (0o111 if path.is_dir() else 0))
