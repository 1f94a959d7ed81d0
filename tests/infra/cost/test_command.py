import json
import os
import re
from pathlib import Path

import pytest

from infra.cost import prices, rates
from infra.cost.__main__ import main

ROOT = Path(__file__).parents[3]
FLAGS = ["--companies", "8e6", "--updates-per-day", "2e5", "--questions-per-second", "20"]


def told(capsys, *flags):
    assert main([*FLAGS, "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_line_of_the_report_has_its_reason_and_the_inputs_stand_above(capsys):
    assert main(FLAGS) == 0
    said = capsys.readouterr().out
    assert said.startswith("8,000,000 companies, 200,000 updates a day, 20 questions a second\n")
    assert prices.read().described["as_of"] in said and "edit infra/cost/prices.toml" in said
    assert rates.read().cpu in said
    for part in ("first load", "reindex", "serving", "stream", "search", "Elasticsearch", "storage"):
        assert re.search(rf"^{part}  .*\S", said, re.MULTILINE), part
    assert re.search(r"^ +[\d,]+ USD  a month$", said, re.MULTILINE)
    assert "p99" in said and "largest backlog" in said and "not counted: network" in said


def test_json_has_the_same_with_rates_and_where_they_are_from(capsys):
    found = told(capsys)
    assert found["workload"]["companies"] == 8e6
    assert set(rates.UNITS) < set(found["rates"])
    assert all(found["rates"][name]["source"] for name in rates.UNITS)
    monthly = sum(line["money"] for line in found["lines"] if line["per"] == "month")
    assert found["totals"]["a month"] == pytest.approx(monthly, abs=0.1)
    assert found["day"]["outages"] and found["day"]["seed"] == 16


def test_flags_change_what_they_say(capsys):
    usual = told(capsys)
    calm = told(capsys, "--outage", "none")
    assert calm["day"]["freshness_p99_s"] < usual["day"]["freshness_p99_s"]
    longer = told(capsys, "--outage", "serving@09:00+2h")
    assert longer["day"]["longest_wait_s"] == pytest.approx(7200, abs=2)
    assert told(capsys, "--seed", "1")["day"]["records"] != usual["day"]["records"]
    assert told(capsys, "--replicas", "2")["totals"]["a month"] > usual["totals"]["a month"]


def test_the_day_is_drawn(capsys, tmp_path):
    for name in ("day.png", "day.svg"):
        told(capsys, "--plot", str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--companies", "many"], "a number such as 8e6 is expected, got 'many'"),
        (["--companies", "0"], "--companies is 0; a number from 1 to 1e+09"),
        (["--companies", "nan"], "--companies is nan"),
        (["--replicas", "1.5"], "a whole number"),
        (["--utilisation", "1.5"], "--utilisation is 1.5; a number from 0.05 to 0.95"),
        (["--fleet", "0"], "at least 1 is expected"),
        (["--outage", "lunch"], "--outage 'lunch' is not like serving@10:00+20m"),
        (["--rates", "nowhere.json"], "--rates nowhere.json cannot be read"),
        (["--prices", "nowhere.toml"], "--prices nowhere.toml cannot be read"),
        (["--plot", "nowhere/day.png"], "--plot nowhere/day.png cannot be written"),
        (["--plot", "day.docx"], "--plot day.docx cannot be written"),
        (["--compnies", "3"], "unrecognized arguments: --compnies 3"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exit_code_2(flags, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main([*FLAGS, *flags])
    except SystemExit as ended:
        code = ended.code
    error = capsys.readouterr().err
    assert code == 2
    assert said in error and error.startswith("error: ") and error.count("\n") == 1


def test_a_table_of_prices_without_a_day_or_a_price_is_refused(capsys, tmp_path):
    table = prices.DEFAULT.read_text()
    file = tmp_path / "prices.toml"
    for old, said in {
        "as_of = 2026-11-18": "does not say of which day",
        "ssd_gb_month = 0.17": "lacks disk.ssd_gb_month; add a line `ssd_gb_month = ...` under [disk]",
        "cpu_factor = 0.5": "lacks compute.cpu_factor",
    }.items():
        assert table.count(old) == 1
        file.write_text(table.replace(old, ""))
        assert main([*FLAGS, "--prices", str(file)]) == 2
        assert said in capsys.readouterr().err


# rates


def test_the_committed_rates_have_every_unit_and_a_source():
    read = rates.read()
    assert set(read.rates) == set(rates.UNITS)
    assert all(len(rate.source) > 10 and "todo" not in rate.source for rate in read.rates.values())
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", read.date) and "cores" in read.cpu


def test_a_file_that_lacks_a_rate_names_it_with_its_unit(capsys, tmp_path):
    given = json.loads(rates.DEFAULT.read_text())
    del given["rates"]["encode"]
    (tmp_path / "rates.json").write_text(json.dumps(given))
    assert main([*FLAGS, "--rates", str(tmp_path / "rates.json")]) == 2
    assert "needs the rate 'encode', above 0, in texts/s; it has none" in capsys.readouterr().err


def test_results_of_the_benchmarks_replace_what_they_measured(capsys, tmp_path):
    index = {
        "Elasticsearch sink / parallel_bulk": {"ours": 4000.0},
        "LanceDB sink / Elasticsearch sink": {"ours": 9000.0},
        "Elasticsearch, approximate / exact": {"ours": 0.97},
    }
    (tmp_path / "index.json").write_text(json.dumps(index))
    read = rates.read(tmp_path)
    assert read["elasticsearch_write"].a_core == 4000 / (os.cpu_count() or 1)
    assert read["recall"].value == 0.97
    assert "python -m benchmarks index" in read["lancedb_write"].source
    assert read["encode"] == rates.read()["encode"]
    (tmp_path / "index.json").write_text("{}")
    assert main([*FLAGS, "--rates", str(tmp_path)]) == 2
    assert "not as its benchmark writes it" in capsys.readouterr().err
    (tmp_path / "index.json").unlink()
    assert main([*FLAGS, "--rates", str(tmp_path)]) == 2
    assert "holds none of index.json" in capsys.readouterr().err


def test_the_rows_of_results_are_named_as_the_benchmarks_name_them():
    """Read in their source: to import them would load TensorFlow."""
    source = {name: (ROOT / "benchmarks" / f"{name}.py").read_text() for name in ("index", "search", "stream")}
    senders = (ROOT / "benchmarks/measures/senders.py").read_text()
    assert 'ALL_AT_ONCE = "one embed() of all texts"' in senders
    assert 'ENCODER, COMPILED = "encoder in process"' in (ROOT / "benchmarks/serving.py").read_text()
    assert 'f"{ELASTIC} sink / {BULK}"' in source["index"] and 'f"{LANCE} sink / {ELASTIC} sink"' in source["index"]
    assert 'f"{name}, approximate / exact"' in source["index"] and '"parallel_bulk"' in source["index"]
    assert 'f"{PEOPLE} people at once"' in source["search"] and "PEOPLE, MINUTES = 50" in source["search"]
    assert 'f"{name}: {what}"' in source["search"] and 'f"p{share} ms"' in source["search"]
    assert '"messages/s"' in source["stream"] and '"p99 s"' in source["stream"] and "SHARE = 0.5" in source["stream"]
