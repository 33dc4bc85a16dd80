"""CostCalculator: the cost of generating one token, by model size and machine speed."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.model.costs import StepCost, step_cost
from attnbook.web._widget import Widget, WidgetError, as_list, format_number

LISTS = json.loads(Path(__file__).with_name("lists.json").read_text("utf-8"))
WIDTHS, MOST, BYTES, CHARTS = (LISTS[name] for name in ("WIDTHS", "MOST", "BYTES", "CHARTS"))
SPANS, SIZES, COUNTS = (LISTS[name] for name in ("SPANS", "SIZES", "COUNTS"))
SHORT, STORE = (LISTS[name] for name in ("SHORT", "STORE"))
LEAST_HEAD = 8  # smallest size of a head
POINT = {"n": int, "batch": int, "cache": bool, "operations": float, "bytes": float}
POINT |= {"seconds": float}


def scaled(x: float | int, units: Sequence[str]) -> str:
    """`x` with three significant digits and a unit, each a thousand times the one before."""
    n = 0
    while n < len(units) - 1 and x >= 999.5:
        x, n = x / 1000, n + 1
    plain = x == int(x) and not n
    text = format_number(float(x), 0 if plain else 2 if x < 9.995 else 1 if x < 99.95 else 0)
    whole, dot, rest = text.partition(".")
    return f"{int(whole):,}{dot}{rest}{units[n]}"


def timed(x: float | int) -> str:
    """A time in seconds, in a suitable unit."""
    return scaled(x, [" s"]) if x >= 1 else scaled(x * 1e9, [" ns", " µs", " ms", " s"])


def rated(x: float) -> str:
    """`x` scaled with `COUNTS`, or with two significant digits below 0.01."""
    if x < 0.01:
        return np.format_float_positional(x, 2, fractional=False, trim="-")
    return scaled(x, COUNTS)


class Pass(NamedTuple):
    """A pass through the blocks, under the roofline.

    Attributes:
        intensity: operations per byte read.
        reached: the most operations per second that it can reach.
        bound: what limits it, "arithmetic" or "memory".
    """

    intensity: float
    reached: float
    bound: str


class CostCalculator(Widget):
    """Operations, memory and time for a decoder to generate one token, with sliders for sizes.

    `costs.step_cost` gives operations and bytes. A step takes as long as its arithmetic or as
    reading the parameters and the cache once, whichever is longer. Curves show one of the three
    against n, or a roofline shows what the machine can reach.

    Args:
        models: name -> sizes of a model to choose from: d_model, n_layers, n_heads, n_kv_heads, and
            size, the bytes per number.
        machines: name -> a machine's speed (operations per second) and bandwidth (bytes per
            second).
        settings: question -> what choosing it sets exactly: the names of a model and of a machine,
            n and batch.
        points: measurements of the first model on the first machine, each with n, batch,
            cache, operations, bytes (of the cache) and seconds.
        n: number of tokens in each text so far, 1 to 131,072.
        batch: number of texts at once, 1 to 1,024.
        cache: whether the keys and values of earlier tokens are cached.
        chart: what the curves show, "operations", "memory" or "time"; or "roofline".
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    It starts with the first model and machine. With a kernel, `n`, `batch`, `cache`, `chart`, the
    sizes, `speed` and `bandwidth` track the reader's choices; setting them changes what is shown.
    """

    _esm, _css = bundles.load("CostCalculator")

    models = traitlets.List(traitlets.Dict()).tag(
        sync=True
    )  # the page would sort the keys of a Dict
    machines = traitlets.List(traitlets.Dict()).tag(sync=True)
    settings = traitlets.List(traitlets.Dict()).tag(sync=True)
    points = traitlets.List(traitlets.Dict()).tag(sync=True)
    d_model = traitlets.Int(576).tag(sync=True)
    n_layers = traitlets.Int(30).tag(sync=True)
    n_heads = traitlets.Int(9).tag(sync=True)
    n_kv_heads = traitlets.Int(3).tag(sync=True)
    size = traitlets.Int(2).tag(sync=True)
    speed = traitlets.Float(1e11).tag(sync=True)
    bandwidth = traitlets.Float(1e10).tag(sync=True)
    n = traitlets.Int(1024).tag(sync=True)
    batch = traitlets.Int(1).tag(sync=True)
    cache = traitlets.Bool(True).tag(sync=True)
    chart = traitlets.Unicode("operations").tag(sync=True)

    def __init__(
        self,
        models: Mapping[str, Mapping[str, int]],
        machines: Mapping[str, Mapping[str, float | int]],
        *,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        points: Sequence[Mapping[str, Any]] = (),
        n: int = 1024,
        batch: int = 1,
        cache: bool = True,
        chart: str = "operations",
        title: str = "",
        name: str | None = None,
    ) -> None:
        for what, given, keys in (
            ("models", models, [*SIZES]),
            ("machines", machines, ["speed", "bandwidth"]),
        ):
            named = given if isinstance(given, Mapping) else {}
            if not named or any(set(_mapping(each)) != set(keys) for each in named.values()):
                raise WidgetError(f"{what} must have {', '.join(keys)} each, not {given!r:.80}")
        for each, sizes in models.items():
            _check_sizes(sizes, f"models[{each!r}]: ")
        for each, speeds in machines.items():
            _check_speeds(speeds, f"machines[{each!r}]: ")
        first = {**next(iter(models.values())), **next(iter(machines.values()))}
        super().__init__(
            name=name,
            title=title,
            models=[{"name": key, **sizes} for key, sizes in models.items()],
            machines=[{"name": key, **speeds} for key, speeds in machines.items()],
            settings=[
                {
                    "name": key,
                    "cache": True,
                    **_chosen(given, models, machines, f"settings[{key!r}]: "),
                }
                for key, given in (settings or {}).items()
            ],
            **{key: first[key] for key in (*SIZES, "speed", "bandwidth")},
            points=[dict(_mapping(point)) for point in as_list(points, "points", "measurements")],
            n=n,
            batch=batch,
            cache=cache,
            chart=chart,
        )

    @traitlets.validate("models")
    def _check_models(self, proposal: Any) -> list[dict[str, Any]]:
        for sizes in proposal["value"]:
            _check_sizes(sizes, f"models[{sizes['name']!r}]: ")
        return proposal["value"]

    @traitlets.validate("machines")
    def _check_machines(self, proposal: Any) -> list[dict[str, Any]]:
        for speeds in proposal["value"]:
            _check_speeds(speeds, f"machines[{speeds['name']!r}]: ")
        return proposal["value"]

    @traitlets.validate("points")
    def _check_points(self, proposal: Any) -> list[dict[str, Any]]:
        for point in proposal["value"]:
            real = all(isinstance(x, int | float) and math.isfinite(x) for x in point.values())
            if set(point) != set(POINT) or not real:
                raise WidgetError(f"points must have {', '.join(POINT)} each, not {point}")
            for name, most in (("n", MOST[0]), ("batch", MOST[2])):
                if not (isinstance(point[name], int) and 1 <= point[name] <= most):
                    raise WidgetError(f"points: {name} must be 1..{most}, not {point[name]}")
            for name, low in (("operations", 1), ("bytes", 0), ("seconds", 1e-12)):
                if point[name] < low:
                    above = "at least 0" if name == "bytes" else "above 0"
                    raise WidgetError(f"points: {name} must be {above}, not {point[name]}")
        return [
            {key: kind(point[key]) for key, kind in POINT.items()} for point in proposal["value"]
        ]

    @traitlets.validate(*SIZES)
    def _check_size(self, proposal: Any) -> int:
        sizes = {key: getattr(self, key) for key in SIZES}
        _check_sizes({**sizes, proposal["trait"].name: proposal["value"]})
        return proposal["value"]

    @traitlets.validate("n", "batch")
    def _check_count(self, proposal: Any) -> int:
        name = proposal["trait"].name
        most = MOST[0] if name == "n" else MOST[2]
        if not 1 <= proposal["value"] <= most:
            raise WidgetError(f"{name} must be 1..{most}, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("speed", "bandwidth")
    def _check_speed(self, proposal: Any) -> float:
        _check_speeds({proposal["trait"].name: proposal["value"]})
        return proposal["value"]

    @traitlets.validate("chart")
    def _check_chart(self, proposal: Any) -> str:
        if proposal["value"] not in CHARTS:
            raise WidgetError(f"chart must be one of {CHARTS}, not {proposal['value']!r}")
        return proposal["value"]

    def content(self) -> bytes:
        return f"{self.models} {len(self.machines)} {self.chart}".encode()

    def cost(self, **changes: Any) -> StepCost:
        """Operations and bytes of a step; `changes` override the traits."""
        names = ("n", "d_model", "n_layers", "n_heads", "n_kv_heads", "batch", "cache", "size")
        return step_cost(**{**{name: getattr(self, name) for name in names}, **changes})

    def seconds(self, **changes: Any) -> tuple[float, float]:
        """Seconds spent on arithmetic, and seconds spent on reading memory."""
        return self.cost(**changes).seconds(self.speed, self.bandwidth)

    def roofline(self) -> dict[str, Pass]:
        """Where two passes lie: all n tokens of a prompt at once, and one more token."""
        passes = {"reading the prompt": {"cache": False}, "writing a token": {}}
        found = {}
        for name, changes in passes.items():
            cost, (computing, reading) = self.cost(**changes), self.seconds(**changes)
            bound = "arithmetic" if computing > reading else "memory"
            found[name] = Pass(cost.intensity, cost.operations / max(computing, reading), bound)
        return found

    def curves(self) -> dict[str, list[float]]:
        """The values of each curve at n = 1, 2, 4 ... 131,072; a roofline has no such curves."""
        n = [2**k for k in range(18)]
        if self.chart == "roofline":
            return {}
        if self.chart == "operations":
            ways = {"with a cache": True, "all anew": False}
            return {
                name: [float(self.cost(n=m, cache=way).operations) for m in n]
                for name, way in ways.items()
            }
        if self.chart == "memory":
            kinds = ["parameters", "scores", *["cache"] * self.cache]
            return {kind: [float(getattr(self.cost(n=m), kind)) for m in n] for kind in kinds}
        return {
            name: [self.seconds(n=m)[k] for m in n]
            for k, name in enumerate(("computing", "reading"))
        }

    def summary(self) -> str:
        sizes = f"d {self.d_model}, {self.n_layers} blocks, {self.n_heads} heads on"
        return f"{sizes} {self.n_kv_heads}, {self.n:,} tokens, {len(self.points)} measured"

    def draw(self, figure: Figure) -> None:
        (axis,) = figure.subplots(1, squeeze=False)[0]
        if self.chart == "roofline":
            self._draw_roof(axis)
        else:
            self._draw_curves(axis)
        axis.set(xscale="log", yscale="log")
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=8)

    def _draw_roof(self, axis: Axes) -> None:
        ridge, passes = self.speed / self.bandwidth, self.roofline()
        every = [ridge, *(each.intensity for each in passes.values())]
        x = np.array([min(every) / 10, ridge, max(every) * 10])
        roof = f"{scaled(self.bandwidth, STORE)} a second, {scaled(self.speed, SHORT)} operations"
        axis.plot(x, np.minimum(self.bandwidth * x, self.speed), label=roof)
        for (name, (intensity, reached, bound)), mark in zip(passes.items(), "so", strict=True):
            axis.plot(intensity, reached, mark, label=f"{name}: bound by {bound}")
        axis.set_xlabel(f"operations a byte; the ridge at {rated(ridge)}", fontsize=8)
        axis.set_ylabel("operations a second", fontsize=8)

    def _draw_curves(self, axis: Axes) -> None:
        for (name, values), style in zip(self.curves().items(), ("-", "--", ":"), strict=False):
            axis.plot(2 ** np.arange(18), values, style, label=name)
        axis.axvline(self.n, color="#999999", linewidth=1)
        computing, reading = self.seconds()
        axis.set_xlabel(
            f"tokens; at {self.n:,} computing {timed(computing)}, reading {timed(reading)}",
            fontsize=8,
        )
        axis.set_ylabel(
            {"memory": "bytes", "time": "seconds"}.get(self.chart, self.chart), fontsize=8
        )


def _chosen(
    given: Mapping[str, Any], models: Mapping[str, Any], machines: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """The traits that a setting sets."""
    if set(_mapping(given)) != {"model", "machine", "n", "batch"}:
        raise WidgetError(f"{where}must have model, machine, n and batch, not {given!r:.80}")
    if given["model"] not in models or given["machine"] not in machines:
        raise WidgetError(f"{where}no such model or machine: {given['model']}, {given['machine']}")
    for name, most in (("n", MOST[0]), ("batch", MOST[2])):
        if not (isinstance(given[name], int) and 1 <= given[name] <= most):
            raise WidgetError(f"{where}{name} must be 1..{most}, not {given[name]}")
    counts = {name: given[name] for name in ("n", "batch")}
    return {**counts, **models[given["model"]], **machines[given["machine"]]}


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _check_speeds(speeds: Mapping[str, Any], where: str = "") -> None:
    for name, (low, high) in (("speed", SPANS[:2]), ("bandwidth", SPANS[2:])):
        speed = speeds.get(name, 10**low)
        if not isinstance(speed, int | float) or not 10**low <= speed <= 10**high:
            raise WidgetError(f"{where}{name} must be 1e{low} to 1e{high}, not {speed!r}")


def _check_sizes(sizes: Mapping[str, Any], where: str = "") -> None:
    for name in SIZES:
        if not isinstance(sizes[name], int):
            raise WidgetError(f"{where}{name} must be a whole number, not {sizes[name]!r}")
    d, layers, heads, groups, size = (sizes[name] for name in SIZES)
    if d not in WIDTHS:
        raise WidgetError(f"{where}d_model must be one of {WIDTHS}, not {d}")
    if not 1 <= layers <= MOST[1]:
        raise WidgetError(f"{where}n_layers must be 1..{MOST[1]}, not {layers}")
    if not 1 <= heads <= d // LEAST_HEAD or d % heads:
        raise WidgetError(
            f"{where}n_heads must divide d_model, {d}, into heads of 8 numbers or more, not {heads}"
        )
    if groups < 1 or heads % groups:
        raise WidgetError(f"{where}n_kv_heads must divide n_heads, {heads}, not {groups}")
    if size not in BYTES:
        raise WidgetError(f"{where}size must be one of {BYTES} bytes, not {size}")
