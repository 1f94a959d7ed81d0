"""The supply chain: known weaknesses of what is locked, hashes of all of it, and no secret in any file."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from infra.checks.check import Check
from infra.checks.tools import python_tool
from infra.local.processes import Unavailable

LOCK = "requirements.lock"
AUDIT_SECONDS = 900
# Advisories that do not apply: their id, and why. Each is looked at again when the package is raised.
EXPLAINED: dict[str, str] = {}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}(?=\s|$)")

SECRETS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+(?:[\w+/=]{16,}|Proc-Type)"),
    "a key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a key of Google": re.compile(r"\bAIza[\w-]{35}\b"),
    "a token of Google": re.compile(r"\bya29\.[\w-]{20,}"),
    "a service account's key": re.compile(r'"private_key_id"\s*:\s*"[0-9a-f]{40}"'),
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{60,})"),
    "a token of GitLab": re.compile(r"\bglpat-[\w-]{20,}"),
    "a token of Slack": re.compile(r"\bxox[abprs]-[\w-]{10,}"),
    "a token of PyPI": re.compile(r"\bpypi-AgEI[\w-]{50,}"),
    "a token of npm": re.compile(r"\bnpm_[A-Za-z0-9]{36}\b"),
    "a token of Hugging Face": re.compile(r"\bhf_[A-Za-z0-9]{30,}\b"),
    "a signed token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'`{}$<>]+:(?P<value>[^\s/:@\"'`{}$<>]+)@[\w\[]"),
    "a password": re.compile(
        r"""(?ix)\b\w*(?:password|passwd|api_?key|secret_?key|access_?token|client_?secret)["']?\s*[:=]\s*
        ["'](?P<value>[\w+/=.!@\#%^&*-]{12,})["']"""
    ),
}  # fmt: skip
# What examples and tests say in place of a secret; NAMES_IN_CAPITALS, and names in Secret Manager, stand for one.
PLACEHOLDER = re.compile("hunter2|not-a-secret|password|secret|word|[A-Z][A-Z_]*|projects/[^/]+/secrets/.+")
BINARY = (".png", ".jpg", ".ico", ".gz", ".woff2", ".parquet", ".pdf")


def hashed(root: Path) -> list[str]:
    """Without hashes an index could answer with any file it likes."""
    entries = re.split(r"(?<!\\)\n", (root / LOCK).read_text().strip())
    return [f"{LOCK}: {entry.split()[0]} has no hash: `make lock`" for entry in entries if not HASH.search(entry)]


def audited(root: Path) -> list[str]:
    """By pip-audit, which asks PyPI. What it skips it calls clean: here it is no answer at all."""
    command = [str(python_tool("pip-audit")), "--requirement", str(root / LOCK), "--require-hashes", "--disable-pip",
               "--progress-spinner", "off", "--timeout", "15", "--format", "json"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=AUDIT_SECONDS)
        told = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        raise Unavailable("pip-audit got no answer: known weaknesses of the lock were not looked up") from None
    return judged(told)


def judged(told: list[dict[str, Any]]) -> list[str]:
    """A line for each advisory that is not explained; Unavailable where the service knows none of the packages."""
    skipped = [one["name"] for one in told if "skip_reason" in one]
    if len(skipped) == len(told):
        raise Unavailable("PyPI's service for weaknesses cannot be reached from here: pip-audit skipped all packages")
    lines = [f"{LOCK}: {name} could not be looked up" for name in skipped]
    for one in told:
        for advisory in one.get("vulns", []):
            known = {advisory["id"], *advisory.get("aliases", [])}
            if not known & EXPLAINED.keys():
                mended = ", ".join(advisory.get("fix_versions", [])) or "no version"
                lines.append(f"{LOCK}: {one['name']} {one['version']}: {advisory['id']}, mended by {mended}")
    return lines


def without_secrets(root: Path) -> list[str]:
    """Of all files that are, or would be, in the repository."""
    lines = []
    for path in _files(root):
        try:
            text = (root / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for line, what in secrets_in(text):
            lines.append(f"{path}:{line}: {what}")
    return lines


def secrets_in(text: str) -> list[tuple[int, str]]:
    """Lines, from 1, and what stands there; never the secret itself, which would end up in a log."""
    found = []
    for what, pattern in SECRETS.items():
        for match in pattern.finditer(text):
            value = match.groupdict().get("value")
            if value is None or not PLACEHOLDER.fullmatch(value):
                found.append((text.count("\n", 0, match.start()) + 1, what))
    return sorted(found)


def _files(root: Path) -> list[str]:
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.split("\0")
    else:  # a copy, or a release without its history
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return sorted(name for name in names if name and not name.endswith(BINARY))


CHECKS = [
    Check("supply: every requirement has its hashes", hashed),
    Check("supply: no secret in any file", without_secrets),
    Check("supply: known weaknesses", audited, slow=True),
]
