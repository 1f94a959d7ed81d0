import json
from pathlib import Path

import pytest

from infra.cost.__main__ import main as cost
from infra.cost.sizes import BEGIN, DOCUMENT, END, SIZES, main, table, with_table

ROOT = Path(__file__).parents[3]


def test_the_document_has_the_table_of_today_s_rates_and_prices():
    """`python -m infra.cost.sizes` makes it anew."""
    text = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    assert text == with_table(text, table())


def test_its_figures_are_those_of_the_command(capsys):
    rows = {
        cells[1]: cells[2:-1] for line in table().splitlines() if (cells := [cell.strip() for cell in line.split("|")])
    }
    for column, flags in enumerate(SIZES.values()):
        assert cost([*flags, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        month = rows["**USD a month**"][column].strip("*")
        assert float(month.replace(",", "")) == pytest.approx(told["totals"]["a month"], abs=0.51)
        backlog = rows["simulated day: largest backlog"][column]
        assert int(backlog.replace(",", "")) == told["day"]["largest_backlog"]
    assert list(rows[""]) == list(SIZES)


def test_the_largest_of_them_is_warned_of_its_one_shard(capsys):
    assert cost([*SIZES["100 million"], "--json"]) == 0
    assert any("one shard of 521 GB" in warning for warning in json.loads(capsys.readouterr().out)["warnings"])


def test_a_document_is_changed_between_its_marks_alone(tmp_path, capsys):
    file = tmp_path / "operations.md"
    file.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main(["--document", str(file)]) == 0
    changed = file.read_text()
    assert changed.startswith(f"before\n{BEGIN}\n\n|") and changed.endswith(f"|\n\n{END}\nafter\n")
    assert "old" not in changed
    file.write_text("no place\n")
    assert main(["--document", str(file)]) == 2
    assert main(["--document", str(tmp_path / "none.md")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "has no place for the table" in said[0] and "cannot be read" in said[1]
