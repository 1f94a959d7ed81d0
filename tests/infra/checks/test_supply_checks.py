"""Planted secrets and weak packages, each named by a check; what could not be looked up is not called clean."""

import subprocess

import pytest

from infra.checks import supply
from infra.local.processes import ROOT, Unavailable

LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE3fG4hI5jK6lM7nO8pQ9rS0tU1v"


def test_no_file_holds_a_secret_and_every_requirement_has_hashes():
    assert len(supply._files(ROOT)) > 300
    assert supply.without_secrets(ROOT) == []
    assert supply.hashed(ROOT) == []


# Put together here: this file is searched, too.
PLANTED = {
    "a private key": f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{LETTERS}\n",
    "a key of AWS": "id = AKIA" + "IOSFODNN7ABCDEFG",
    "a key of Google": "key: AIza" + LETTERS[:35],
    "a token of Google": "ya29." + LETTERS[:40],
    "a service account's key": '{"private_key' + '_id": "' + "0123456789abcdef" * 2 + '01234567"}',
    "a token of GitHub": "ghp_" + LETTERS[:36],
    "a token of GitLab": "glpat-" + LETTERS[:20],
    "a token of Slack": "xoxb-" + LETTERS[:24],
    "a token of PyPI": "pypi-AgEI" + LETTERS[:60],
    "a token of npm": "npm_" + LETTERS[:36],
    "a token of Hugging Face": "hf_" + LETTERS[:34],
    "a signed token": "eyJ" + LETTERS[:20] + ".eyJ" + LETTERS[:20] + "." + LETTERS[:20],
    "a password in an address": "index: https://elastic:" + "tr0ub4dor@es.internal:9200/companies",
    "a password": "PAUSE_ES_PASSWORD: '" + LETTERS[:20] + "'",
}


def test_every_kind_is_planted():
    assert PLANTED.keys() == supply.SECRETS.keys()


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("in_git", [True, False])
def test_a_secret_is_named_by_its_line_and_never_repeated(tmp_path, kind, in_git):
    if in_git:
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
        (tmp_path / ".gitignore").write_text("build/\n")
        (tmp_path / "build").mkdir()
        (tmp_path / "build" / "settings.env").write_text(PLANTED[kind])
    (tmp_path / "settings.env").write_text(f"PORT=8000\n{PLANTED[kind]}\n")
    found = supply.without_secrets(tmp_path)
    assert f"settings.env:2: {kind}" in found
    assert not any("build/" in line for line in found)
    assert LETTERS[:16] not in str(found) and "tr0ub4dor" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "https://elastic:hunter2@es:9200",
        "https://USER:PASSWORD@es:9200",
        "https://${USER}:${PASSWORD}@es:9200",
        "https://es.internal:9200/companies",
        'password = os.environ["PAUSE_ES_PASSWORD"]',
        'PAUSE_ES_API_KEY="projects/p/secrets/key/versions/latest"',
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_what_only_speaks_of_secrets_is_none(text):
    assert supply.secrets_in(text) == []


def test_a_requirement_without_hashes_is_named(tmp_path):
    lock = tmp_path / supply.LOCK
    lock.write_text(f"a==1 \\\n    --hash=sha256:{'0' * 64}\nb==2\nc==3 \\\n    --hash=sha256:00\n")
    told = [line.split(" has")[0] for line in supply.hashed(tmp_path)]
    assert told == ["requirements.lock: b==2", "requirements.lock: c==3"]


def test_what_was_not_looked_up_is_not_called_clean(monkeypatch):
    skipped = {"name": "aiohttp", "skip_reason": "Dependency not found on PyPI and could not be audited: aiohttp (1)"}
    sound = {"name": "numpy", "version": "2.4.6", "vulns": []}
    weak = {
        "name": "requests",
        "version": "2.0",
        "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-2030-1"], "fix_versions": ["2.1"]}],
    }
    with pytest.raises(Unavailable, match="skipped all packages"):
        supply.judged([skipped, skipped])
    assert supply.judged([sound, skipped]) == ["requirements.lock: aiohttp could not be looked up"]
    assert supply.judged([sound, weak]) == ["requirements.lock: requests 2.0: PYSEC-1, mended by 2.1"]
    monkeypatch.setitem(supply.EXPLAINED, "CVE-2030-1", "we send no such request")
    assert supply.judged([sound, weak]) == []
