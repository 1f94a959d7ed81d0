"""Machines, hours and money before anything is deployed, and a day of its stream: `python -m infra.cost`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from common.command import Parser, exit_code
from infra.cost import prices, rates, report
from infra.cost.day import outages
from infra.cost.day.arrivals import Rhythm, arrivals
from infra.cost.day.simulation import TAIL, Day, Fleet, simulate
from infra.cost.parts import once, one_machine, steady
from infra.cost.parts.estimate import Estimate
from infra.cost.plan import Plan
from infra.cost.workload import BOUNDS, Workload

SEED = 16
# Seconds until a machine that is wanted does work: a node, an image, a model loaded and compiled; a worker of Dataflow.
SERVING_DELAY, WORKER_DELAY = 180, 240
MOST = 4  # times the machines of the plan
DRAIN = 600.0  # seconds in which the autoscalers mean to be rid of a backlog


def estimate(plan: Plan) -> Estimate:
    made = Estimate()
    for part in (
        once.first_load,
        once.reindex,
        steady.serving,
        steady.stream,
        steady.search,
        steady.elasticsearch,
        steady.storage,
        one_machine.instead,
    ):
        part(plan, made)
    return made


def simulated(plan: Plan, made: Estimate, given: tuple[outages.Outage, ...], seed: int, most: int | None) -> Day:
    """The day of a plan, its fleets scaled between the least and some times the plan's machines."""
    work, able = plan.workload, plan.capacity
    planned = {
        "serving": int(made.value("serving", "machines")),
        "workers": int(made.value("stream", "Dataflow workers")),
    }
    # Only texts that changed are encoded: of records without any, the index is the limit.
    encoded = able.texts_a_serving_machine / work.changed if work.changed else able.documents_a_node
    each = {"serving": encoded, "workers": able.records_a_worker}
    least = {"serving": work.least_machines, "workers": 1}
    delays = {"serving": SERVING_DELAY, "workers": WORKER_DELAY}
    fleets = [
        Fleet(name, each[name], least[name], max(least[name], most or MOST * planned[name]), delays[name])
        for name in planned
    ]
    arrived = arrivals(work.updates_per_day, outages.DAY_SECONDS + TAIL, Rhythm(), seed)
    writing = (plan.rates["freshness_p50"].value, plan.rates["freshness_p99"].value)
    return simulate(arrived, fleets, given, able.documents_a_node, work.utilisation, DRAIN, writing)


def told(day: Day, seed: int) -> dict[str, Any]:
    rhythm = Rhythm()
    because = (
        f"+-{rhythm.swing:.0%} over the day, {rhythm.bursts} bursts of {rhythm.burst_share:.0%} of the day in "
        f"{rhythm.burst_seconds // 60} min; a machine of serving is there after {SERVING_DELAY} s, a worker after "
        f"{WORKER_DELAY} s, both scaled to be rid of a backlog in {DRAIN:g} s; writing takes "
        f"{day.writing[0]:g} s (p99 {day.writing[1]:g}), measured"
    )
    return {**day.figures(), "seed": seed, "because": because}


def planned(options: argparse.Namespace) -> tuple[Plan, Estimate, Day]:
    workload = Workload(**{field.name: getattr(options, field.name) for field in fields(Workload)})
    plan = Plan(workload, rates.read(options.rates), prices.read(options.prices), options.fleet)
    made = estimate(plan)
    given = outages.parse_all(options.outage or outages.DEFAULT)
    return plan, made, simulated(plan, made, given, options.seed, options.most_machines)


def as_json(argv: list[str]) -> dict[str, Any]:
    """What the command prints with --json."""
    options = _parser().parse_args(argv)
    plan, made, day = planned(options)
    return report.to_json(plan, made, told(day, options.seed))


def run(options: argparse.Namespace) -> None:
    plan, made, day = planned(options)
    if options.plot:
        from infra.cost.day.picture import draw

        work = plan.workload
        draw(day, f"{work.companies:,.0f} companies, {work.updates_per_day:,.0f} updates a day", options.plot)
    figures = told(day, options.seed)
    if options.json:
        print(json.dumps(report.to_json(plan, made, figures), indent=2))
    else:
        print(report.to_text(plan, made, figures))


def _parser() -> Parser:
    parser = Parser(
        prog="python -m infra.cost",
        description="Machines, hours and money for a workload, from measured rates and a table of prices; and the\n"
        "backlog and freshness of its stream over a simulated day.",
        epilog="example:\n"
        "  python -m infra.cost --companies 8e6 --updates-per-day 2e5 --questions-per-second 20 --plot day.png",
    )
    for field in fields(Workload):
        _, _, meaning = BOUNDS[field.name]
        required = field.default is MISSING
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=_whole if field.type == "int" else _number,
            required=required,
            default=None if required else field.default,
            metavar="N",
            help=meaning + ("" if required else " (default: %(default)g)"),
        )
    parser.add_argument("--fleet", type=_count, metavar="N", help="serving machines of the first load and a reindex")
    parser.add_argument("--most-machines", type=_count, metavar="N", help="of a fleet, as the autoscaler may have")
    parser.add_argument("--rates", type=Path, default=rates.DEFAULT, help="a file, or the folder build/benchmarks")
    parser.add_argument("--prices", type=Path, default=prices.DEFAULT, help="a table of prices (TOML)")
    parser.add_argument(
        "--outage",
        action="append",
        metavar="PART@HH:MM+TIME",
        help=f"of {' or '.join(outages.PARTS)}; again for more, or none (default: {' '.join(outages.DEFAULT)})",
    )
    parser.add_argument("--seed", type=_whole, default=SEED, metavar="N", help="of the day (default: %(default)s)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the day as a picture: .png, .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="for machines")
    return parser


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number such as 8e6 is expected, got {text!r}") from None


def _whole(text: str) -> int:
    value = _number(text)
    if not value.is_integer() or value < 0:
        raise argparse.ArgumentTypeError(f"a whole number of at least 0 is expected, got {text!r}")
    return int(value)


def _count(text: str) -> int:
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is expected, got {text!r}")
    return value


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    return exit_code(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
