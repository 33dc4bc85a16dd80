"""Checks of assignment 5, its second task: the training of a table."""

from collections.abc import Callable
from math import log
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnbook.teach.asking import check
from attnbook.teach.judging import AnswerError, constant, kind, parts, right, same

Answer = Callable[..., Any]
Loss = Callable[[Tensor], Tensor]  # of a table
Rule = Callable[[Tensor, list[Tensor]], Tensor]  # of a table and all gradients so far
Run = tuple[Tensor, Tensor]  # a table, and the losses [step]


@check({"vocab": 3, "n": 2, "steps": 1}, {"vocab": 4, "n": 9, "steps": 4})
def fit(answer: Answer, seed: int = 0, vocab: int = 5, n: int = 40, steps: int = 20) -> None:
    """Gradient descent on the table of a bigram model."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(vocab, vocab, generator=generator)
    tokens = torch.randint(0, vocab, (n,), generator=generator)
    lr = constant(seed, 2.0, 0.5, 1.5, 0.75)
    right_loss = _mean(tokens[:-1], tokens[1:])

    def step(table: Tensor, gradients: list[Tensor]) -> Tensor:
        return table - lr * gradients[-1]

    want, losses = _descent(table, right_loss, steps, step)
    wrong = _mistakes(right_loss, step, table, tokens, lr, steps)
    found = answer(table, tokens, lr, steps)
    parts(found, 2, "fit must return two things: the table, and a list of losses")
    got = same(
        _numbers(found[1]),
        losses,
        "the losses of fit",
        {
            **{words: run[1] for words, run in wrong.items()},
            "each is the loss behind its step; it should be the one before":
                torch.cat([losses[1:], right_loss(want)[None]]),
            "one too many: that of the last table is not asked for":
                torch.cat([losses, right_loss(want)[None]]),
            "one too few: a step has a loss each": losses[:-1],
            "one too few: a step has a loss each ": losses[1:],
            "they are in bits; nats are asked for": losses / log(2),
            "there is one loss; a list of all is asked for": losses[-1:],
        },
        axes="step",
    )  # fmt: skip
    trained = found[0].detach() if isinstance(found[0], Tensor) else found[0]
    same(
        trained,
        want,
        "the table of fit",
        {
            "it is as it was: return the trained one": table,
            **{words: run[0] for words, run in wrong.items()},
            "the last step is missing": _descent(table, right_loss, steps - 1, step)[0],
            "these are probabilities; the logits are asked for": want.softmax(-1),
        },
        axes="token next",
    )  # fmt: skip
    right("fit", got[[0, -1]], seed)


def _mean(read: Tensor, wanted: Tensor) -> Loss:
    return lambda table: cross_entropy(table[read], wanted)


def _descent(table: Tensor, loss_of: Loss, steps: int, rule: Rule) -> Run:
    """A training by any loss and any rule: the table, and the losses before each step."""
    losses, gradients = list[float](), list[Tensor]()
    for _ in range(steps):
        leaf = table.clone().requires_grad_()
        loss = loss_of(leaf)
        losses.append(loss.item())
        gradients.append(torch.autograd.grad(loss, leaf)[0])
        table = rule(table, gradients)
    return table, torch.tensor(losses)


def _mistakes(
    right_loss: Loss, step: Rule, table: Tensor, tokens: Tensor, lr: float, steps: int
) -> dict[str, Run]:
    read, wanted = tokens[:-1], tokens[1:]

    def by(loss_of: Loss) -> Run:
        return _descent(table, loss_of, steps, step)

    def with_rule(rule: Rule) -> Run:
        return _descent(table, right_loss, steps, rule)

    def adam(table: Tensor, gradients: list[Tensor]) -> Tensor:
        mean, square = torch.zeros_like(table), torch.zeros_like(table)
        for g in gradients:
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        n = len(gradients)
        return table - lr * (mean / (1 - 0.9**n)) / ((square / (1 - 0.999**n)).sqrt() + 1e-8)

    return {
        "gradients add up from step to step: set them to zero, or to None, before `backward()`":
            with_rule(lambda t, g: t - lr * torch.stack(g).sum(0)),
        "no step is made: the table stays as it was": with_rule(lambda t, g: t),
        "steps go up: the gradient must be taken away": with_rule(lambda t, g: t + lr * g[-1]),
        "the loss is a sum; the mean is asked for": by(lambda t: len(read) * right_loss(t)),
        "each token guesses itself; it should guess the next one": by(_mean(tokens, tokens)),
        "each token guesses itself; it should guess the next one ": by(_mean(read, read)),
        "each token guesses the one before; it should guess the next one": by(_mean(wanted, read)),
        "columns of the table are read; row i belongs to token i":
            by(lambda t: cross_entropy(t.T[read], wanted)),
        "the last token guesses the first: it has no next one":
            by(_mean(tokens, tokens.roll(-1, 0))),
        "only the last token is guessed; all should be": by(_mean(read[-1:], wanted[-1:])),
        "the sign is wrong: a loss is minus a logarithm": by(lambda t: -right_loss(t)),
        "the softmax was taken twice: cross_entropy takes logits":
            by(lambda t: cross_entropy(t[read].softmax(-1), wanted)),
        "the softmax is missing": by(lambda t: -t[read, wanted].mean()),
        "`lr` is not used": with_rule(lambda t, g: t - g[-1]),
        "these are steps of Adam; gradient descent is asked for": with_rule(adam),
        "it begins with a table of zeros; begin with the one that is given":
            _descent(0 * table, right_loss, steps, step),
        "all gradients are those of the first table: compute the loss anew in each step":
            with_rule(lambda t, g: t - lr * g[0]),
    }  # fmt: skip


def _numbers(got: Any) -> Tensor:
    """A list of losses as a tensor."""
    if isinstance(got, Tensor):
        return got.detach().float()
    if not isinstance(got, list | tuple):
        raise AnswerError(f"the losses of fit must be a list of numbers, got a {kind(got)}")
    values = [
        each.item() if isinstance(each, Tensor) and each.numel() == 1 else each for each in got
    ]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int | float):
            raise AnswerError(f"a loss of fit must be a number, got a {kind(each)}")
    return torch.tensor(values, dtype=torch.float32)
