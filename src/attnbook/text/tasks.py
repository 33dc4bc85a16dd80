"""Tasks without words: the token a fixed distance back, the latest value of a name, a repetition."""

import torch

from attnbook.checks import check_range, check_whole
from attnbook.text.vocabulary import IGNORED, Sequences


def look_back(n: int, seed: int, *, batch: int = 32, distance: int = 3) -> Sequences:
    """Random letters; the target at each letter is the one `distance` places before it.

    A task of exact distance: the letters themselves tell nothing, only their positions do.

    Args:
        n: number of letters in a sequence, drawn from an alphabet of 16.
        seed: of the letters.
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
        seed: of the tokens.
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
    n: int, seed: int, *, batch: int = 32, shortest: int = 4, longest: int = 8
) -> Sequences:
    """Some random letters, again and again; from the second time on, the target is the next letter.

    A task of copying: a letter's target is what came after the same letter before, since all
    letters of a round differ. How long a round is differs from row to row, so that no fixed
    distance helps.

    Args:
        n: number of letters in a sequence.
        seed: of the letters.
        batch: number of sequences.
        shortest, longest: number of letters of a round, out of an alphabet of 20.

    Raises:
        ValueError: if a number is below 1, or the rounds are not in shortest .. longest .. 20.

    Source: Olsson et al. 2022, "Model Analysis Table".
    """
    check_whole(1, n=n, batch=batch, shortest=shortest, longest=longest)
    check_range(shortest, 20, longest=longest)
    generator = torch.Generator().manual_seed(seed)
    rounds = torch.randint(shortest, longest + 1, (batch, 1), generator=generator)
    letters = torch.rand(batch, 20, generator=generator).argsort(-1)
    place = torch.arange(n + 1)
    rows = letters.gather(1, place % rounds)
    return Sequences(rows[:, :-1], rows[:, 1:].where(place[:-1] >= rounds, IGNORED))
