"""The whole soak in small: real parts, seeded traffic and faults, and a checker that finds nothing afterwards."""

from benchmarks.soak import command, traffic
from benchmarks.soak.check.findings import KINDS
from benchmarks.soak.check.history import FILE, MESSAGE
from benchmarks.soak.report import draw, evidence, figures

SECONDS = 20.0


def test_a_short_soak_finds_nothing(elasticsearch_server, tmp_path):
    """Elasticsearch is shared with other tests here: it is neither killed nor restarted."""
    seen = command.soaked(tmp_path / "soak", SECONDS, seed=1, searches=5, elasticsearch=elasticsearch_server)
    told = "\n".join(evidence(seen))
    assert {record.way for record in seen.history.records} >= {FILE, MESSAGE}
    assert {record.kind for record in seen.history.records} >= {"new", "delete", "bad"} & set(traffic.SHARES)
    assert len(seen.faults) >= 2, told
    assert len(seen.lags) >= 50 and sum(bool(reply.hits) for reply in seen.replies) >= 20, told
    assert {kind: seen.counts[kind] for kind in KINDS} == dict.fromkeys(KINDS, 0), told
    assert figures(seen)["failed searches, without such a reason"] == 0, told
    draw(seen, tmp_path / "soak.png")
    assert (tmp_path / "soak" / "history.jsonl").stat().st_size > 10_000
