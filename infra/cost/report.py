"""An estimate for people, for machines, and as the table of docs/operations.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from infra.cost.parts.estimate import ONCE, Estimate
from infra.cost.plan import Plan

LEFT_OUT = (
    "not counted: network, load balancers, logs, support, taxes, discounts, people; facets and name search take longer "
    "the more companies there are, by how much was not measured"
)


def to_json(plan: Plan, made: Estimate, day: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "workload": asdict(plan.workload),
        "prices": plan.prices.described,
        "rates": {
            "cpu": plan.rates.cpu,
            "date": plan.rates.date,
            **{name: asdict(rate) for name, rate in plan.rates.rates.items()},
        },
        **made.to_json(),
        "day": dict(day),
        "left_out": LEFT_OUT,
    }


def to_text(plan: Plan, made: Estimate, day: Mapping[str, Any]) -> str:
    told, currency = plan.prices.described, plan.prices.described["currency"]
    work = plan.workload
    head = [
        f"{work.companies:,.0f} companies, {work.updates_per_day:,.0f} updates a day, "
        f"{work.questions_per_second:g} questions a second",
        f"rates   measured {plan.rates.date} on {plan.rates.cpu}",
        f"prices  {told['region']}, as of {told['as_of']}: {told['note']}",
    ]
    rows = [
        [line.part, line.what, f"{number(line.value)} {line.unit}", _money(line.money, line.per), line.because]
        for line in made.lines
    ]
    totals = [f"{amount(money):>12} {currency}  {name}" for name, money in made.totals().items()]
    warnings = [f"careful: {warning}" for warning in made.warnings]
    return "\n\n".join(
        "\n".join(part) for part in (head, table(rows, currency), totals, _day(day), [*warnings, LEFT_OUT])
    )


def number(value: float) -> str:
    """Whole where it is large; three digits where it is small."""
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


def amount(money: float) -> str:
    return f"{money:,.0f}" if money >= 10 else f"{money:.2f}"


def table(rows: Sequence[Sequence[str]], currency: str) -> list[str]:
    titles = ["part", "what", "how much", currency, "because"]
    widths = [max(len(row[column]) for row in [titles, *rows]) for column in range(len(titles) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in [titles, *rows]
    ]


def _money(money: float, per: str) -> str:
    if not per:
        return ""
    return f"{amount(money)} once" if per == ONCE else f"{amount(money)} a {per}"


def _day(day: Mapping[str, Any]) -> list[str]:
    machines = ", ".join(f"{name} {of['mean']:g} (at most {of['most']})" for name, of in day["machines"].items())
    return [
        f"a simulated day of {day['records']:,.0f} records (seed {day['seed']})",
        f"  seconds until found   p50 {_seconds(day['freshness_p50_s'])}, p99 {_seconds(day['freshness_p99_s'])}, "
        f"longest wait {_seconds(day['longest_wait_s'])}",
        f"  largest backlog       {day['largest_backlog']:,} records at {day['largest_backlog_at']}",
        f"  machines in the mean  {machines}",
        f"  outages               {'; '.join(day['outages']) or 'none'}",
        f"  because               {day['because']}",
    ]


def _seconds(value: float | None) -> str:
    return "not within 6 h after the day" if value is None else f"{value:,.1f}"


def markdown(given: Mapping[str, dict[str, Any]]) -> str:
    """One column a workload, from what `to_json` gives: the lines they all have, totals, and the day."""
    columns = list(given.values())
    rows = [["", *given], ["---"] * (len(columns) + 1)]
    for part, what in dict.fromkeys((line["part"], _same(line["what"])) for one in columns for line in one["lines"]):
        rows.append([f"{part}: {what}", *(_cell(one, part, what) for one in columns)])
    for name in columns[0]["totals"]:
        rows.append([f"**USD {name}**", *(f"**{amount(one['totals'][name])}**" for one in columns)])
    for name in ("freshness_p50_s", "freshness_p99_s", "largest_backlog"):
        title = {"largest_backlog": "largest backlog"}.get(name, f"{name.split('_')[1]} until found, s")
        rows.append([f"simulated day: {title}", *(f"{one['day'][name]:,g}" for one in columns)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _same(what: str) -> str:
    return what.partition(" (")[0]


def _cell(given: dict[str, Any], part: str, what: str) -> str:
    lines = [one for one in given["lines"] if (one["part"], _same(one["what"])) == (part, what)]
    if not lines:
        return ""
    (line,) = lines
    money = f", {amount(line['money'])} USD" if line["per"] else ""
    return f"{number(line['value'])} {line['unit']}{money}"
