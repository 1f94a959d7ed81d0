"""The companies that pairs speak of, by id."""

from __future__ import annotations

import json
from pathlib import Path

from model.data.tsv import numbered_lines
from model.errors import DataError


def read_companies(path: str | Path) -> dict[str, dict]:
    """Companies by id, from JSON lines, plain or .gz."""
    companies: dict[str, dict] = {}
    for number, line in numbered_lines(Path(path)):
        try:
            company = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, row {number}: not JSON ({error})") from error
        if not isinstance(company, dict) or not company.get("id"):
            raise DataError(f"{path}, row {number}: a company needs an 'id'")
        if company.get("deleted"):
            continue
        if not str(company.get("description") or "").strip():
            raise DataError(f"{path}, row {number}: company {company['id']!r} has no 'description'")
        companies[str(company["id"])] = company
    if not companies:
        raise DataError(f"{path}: no companies in it")
    return companies
