"""Deadlines, and what lateness costs by the lecturer's own rule."""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

UNITS = {"hour": 3600, "day": 86400, "week": 7 * 86400}
RULE = re.compile(r"(\d+(?:\.\d+)?) ?% an? (hour|day|week)(?:, at most (\d+(?:\.\d+)?) ?%)?")


@dataclass(frozen=True)
class Penalty:
    """`percent` of the points that were reached, for each unit begun, up to `most` percent."""

    percent: float = 0.0
    unit: str = "day"
    most: float = 100.0

    def of(self, late: timedelta) -> float:
        """The share of the points that is lost, from 0 to 1."""
        begun = math.ceil(max(late.total_seconds(), 0) / UNITS[self.unit])
        return min(self.percent * begun, self.most) / 100


def penalty(rule: str) -> Penalty:
    """The rule of a sentence: "10% a day", or "5% an hour, at most 50%".

    Raises:
        ValueError: if it is none, or takes more than everything.
    """
    found = RULE.fullmatch(rule.strip())
    if not found:
        raise ValueError(f'a penalty must look like "10% a day, at most 50%", got {rule!r}')
    made = Penalty(float(found[1]), found[2], float(found[3] or 100))
    if max(made.percent, made.most) > 100:
        raise ValueError(f"a penalty takes at most 100%, got {rule!r}")
    return made


def lateness(time: datetime | None, until: datetime | None) -> timedelta:
    """How much later than the deadline it came, without a time or a deadline not at all."""
    return max(time - until, timedelta()) if time and until else timedelta()


def told(late: timedelta) -> str:
    """A span in words: "2 d 3 h", "5 min"; nothing if there is none."""
    minutes = math.ceil(late.total_seconds() / 60)
    days, hours = divmod(minutes // 60, 24)
    parts = [(days, "d"), (hours, "h"), (minutes % 60, "min")]
    return " ".join(f"{n} {unit}" for n, unit in parts if n)
