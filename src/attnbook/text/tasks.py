"""Tasks without words: the token a fixed distance back, a name's latest value, a repetition."""

import torch

from attnbook.checks import check_range, check_whole
from attnbook.text.vocabulary import IGNORED, Sequences


def look_back(n: int, seed: int, *, batch: int = 32, distance: int = 3) -> Sequences:
    """Random letters; the target at each letter is the one `distance` positions before it.

    A task of exact distance: the letters themselves tell nothing, only their positions do.

    Args:
        n: number of letters in a sequence, drawn from an alphabet of 16.
        seed: determines the letters.
        batch: number of sequences.
        distance: 1 to n - 1; the first `distance` letters have no target.

    Raises:
        ValueError: if distance is out of range, or batch is below 1.
    """
    check_whole(1, n=n, batch=batch, distance=distance)
    check_range(1, n - 1, distance=distance)
    letters = torch.randint(16, (batch, n), generator=torch.Generator().manual_seed(seed))
    targets = torch.full_like(letters, IGNORED)
    targets[:, distance:] = letters[:, :-distance]
    return Sequences(letters, targets)


def latest_value(n: int, seed: int, *, batch: int = 32) -> Sequences:
    """Assignments and questions, `a=3 c=1 a=5 a?`; the target of a question is the latest value.

    A task of recency: a question must find the last assignment to its name. There are 8 names and 8
    values. The id of an assignment is 9 name + value, that of a question 9 name + 8. Half of the
    tokens are questions; a question about a name without a value has no target.

    Args:
        n: number of tokens in a sequence.
        seed: determines the tokens.
        batch: number of sequences.

    Raises:
        ValueError: if n or batch is below 1.
    """
    check_whole(1, n=n, batch=batch)
    generator = torch.Generator().manual_seed(seed)
    names, values = torch.randint(8, (2, batch, n), generator=generator)
    asks = torch.rand(batch, n, generator=generator) < 0.5
    targets = torch.full_like(names, IGNORED)
    current = torch.full((batch, 8), IGNORED)  # the value of each name so far
    for i in range(n):
        name = names[:, i, None]
        known = current.gather(1, name)
        targets[:, i] = torch.where(asks[:, i], known[:, 0], IGNORED)
        current.scatter_(1, name, torch.where(asks[:, i, None], known, values[:, i, None]))
    return Sequences(9 * names + torch.where(asks, 8, values), targets)


def repetition(
    n: int, seed: int, *, batch: int = 32, ring: int = 8, jump: float = 0.25
) -> Sequences:
    """Letters read around a ring, with jumps after the first round; the target is the next letter.

    A task of copying: a letter's target is the letter that followed it before. No fixed distance
    helps, since the walk jumps. Letters after a jump and in the first round are no targets.

    Args:
        n: number of letters in a sequence.
        seed: determines the letters.
        batch: number of sequences.
        ring: number of different letters in a sequence, out of an alphabet of 20, at least 3.
        jump: probability that a step after the first round leads elsewhere.

    Raises:
        ValueError: if n or batch is below 1, ring is not in 3 .. 20, or jump not in 0 .. 1.

    Source: Olsson et al. 2022, who repeat random tokens.
    """
    check_whole(1, n=n, batch=batch, ring=ring)
    check_range(3, 20, ring=ring)
    check_range(0, 1, jump=jump)
    generator = torch.Generator().manual_seed(seed)
    letters = torch.rand(batch, 20, generator=generator).argsort(-1)
    place = torch.arange(n + 1)
    jumps = (torch.rand(batch, n + 1, generator=generator) < jump) & (place > ring)
    far = torch.randint(2, ring, (batch, n + 1), generator=generator)
    rows = letters.gather(1, (far.where(jumps, 1).cumsum(1) - 1) % ring)
    asked = ~jumps[:, 1:] & (place[:-1] >= ring)
    return Sequences(rows[:, :-1], rows[:, 1:].where(asked, IGNORED))
