"""A simulated day as a picture: what came and what could be written, what waited, how old it was when it was found."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from common.errors import InputError
from infra.cost.day.outages import DAY_SECONDS
from infra.cost.day.simulation import LOOK, Day

COLOURS = {"serving": "#d1495b", "elasticsearch": "#edae49"}
BLUE, GREY = "#00798c", "#8d99ae"
matplotlib.use("Agg")


def draw(day: Day, title: str, file: Path) -> None:
    from matplotlib import pyplot

    figure, (rates, backlog, freshness) = pyplot.subplots(3, 1, figsize=(10, 8), sharex=True, layout="constrained")
    try:
        hours = np.arange(0, DAY_SECONDS, LOOK) / 3600
        _draw_rates(rates, day, hours)
        backlog.fill_between(hours, _by_minute(day.backlog, "max"), color=BLUE, alpha=0.6, linewidth=0)
        backlog.set_ylabel("records waiting")
        # What was not written within hours after the day has no end that could be drawn.
        waited = np.where(np.isfinite(day.waits), day.waits, np.nan) + day.writing[0]
        freshness.plot(hours, _by_minute(waited, "max"), color=BLUE, linewidth=1)
        freshness.set_yscale("log")
        freshness.set_ylabel("seconds until found")
        freshness.set_xlabel("hour of the day")
        freshness.set_xlim(0, 24)
        freshness.set_xticks(range(0, 25, 3))
        for axes in (rates, backlog, freshness):
            _shade(axes, day)
            axes.grid(alpha=0.25)
        rates.set_title(title, loc="left", fontsize=11)
        rates.legend(loc="lower right", bbox_to_anchor=(1, 1), fontsize=8, ncols=4, frameon=False)
        figure.savefig(file, dpi=110)
    except (OSError, ValueError) as error:
        raise InputError(f"--plot {file} cannot be written: {error}") from error
    finally:
        pyplot.close(figure)


def _draw_rates(axes: Axes, day: Day, hours: np.ndarray) -> None:
    axes.plot(hours, _by_minute(day.capacity, "mean"), color=GREY, linewidth=1, label="could be written")
    axes.plot(hours, _by_minute(day.arrived, "mean"), color=BLUE, linewidth=1, label="arrived")
    axes.set_ylabel("records a second")
    axes.set_ylim(bottom=0)


def _shade(axes: Axes, day: Day) -> None:
    for outage in day.outages:
        begins, ends = outage.begins / 3600, (outage.begins + outage.seconds) / 3600
        axes.axvspan(begins, ends, color=COLOURS[outage.part], alpha=0.25, linewidth=0, label=f"{outage.part} away")


def _by_minute(values: np.ndarray, how: str) -> np.ndarray:
    minutes = values[:DAY_SECONDS].reshape(-1, LOOK)
    return np.asarray(np.fmax.reduce(minutes, axis=1) if how == "max" else minutes.mean(axis=1))
