"""What a model computes, asked for from outside: attention weights, or every step."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from attnbook.model.attention import STEPS, Attention


@contextmanager
def recorded(model: nn.Module, *others: type[nn.Module]) -> Iterator[dict[str, Tensor]]:
    """The attention weights of all that a model computes inside the `with` block.

        with recorded(model) as weights:
            model(source, target)
        weights["decoder.stack.blocks.1.cross"]  # [batch head query key]

    Args:
        model: any module that holds attention: of this book, or of another library.
        others: classes of another library's modules that give `(out, weights)`, as
            `transformers.models.bert.modeling_bert.BertSelfAttention` does in "eager" mode.

    Yields:
        A dictionary that fills up, from an attention's path in the model to its weights: `[batch
        query key]` of a recurrent decoder, `[batch head query key]` of multi-head attention. Where
        an attention is called several times, as by a decoder that goes word by word, the queries
        are joined in the order of the calls, and keys that were not there yet have the weight 0.

    Raises:
        ValueError: if there is no attention in the model, it is recorded already, a class of
            `others` gives no weights, or two calls differ in their batch.
    """
    weights: dict[str, Tensor] = {}

    def join(path: str, new: Tensor) -> None:
        old = weights.get(path)
        if old is not None:
            if old.shape[:-2] != new.shape[:-2]:
                raise ValueError(
                    f"calls recorded together must have one batch, got {list(old.shape[:-2])} and"
                    f" {list(new.shape[:-2])} at {path}: record each by itself"
                )
            n = max(old.shape[-1], new.shape[-1])
            new = torch.cat([pad(t, (0, n - t.shape[-1])) for t in (old, new)], dim=-2)
        weights[path] = new

    def join_output(path: str, _module: nn.Module, _inputs: object, out: Any) -> None:
        if not isinstance(out, tuple) or len(out) < 2 or out[1] is None:
            raise ValueError(f"others must give (out, weights), got no weights at {path}")
        join(path, out[1])

    found = [(p, m) for p, m in model.named_modules() if isinstance(m, (Attention, *others))]
    if any(isinstance(m, Attention) and m.record for _, m in found):
        raise ValueError("model must not be in another recorded block already")
    if not found:
        raise ValueError(f"model must hold attention to record, got {type(model).__name__}")
    with ExitStack() as afterwards:
        for path, module in found:
            if isinstance(module, Attention):
                module.record = partial(join, path)
                afterwards.callback(setattr, module, "record", None)
            else:
                hook = module.register_forward_hook(partial(join_output, path))
                afterwards.callback(hook.remove)
        yield weights
        for path, seen in weights.items():
            if seen.is_inference():  # of a search: training may not use it
                weights[path] = seen.clone()


Calls = dict[str, tuple[tuple[Any, ...], Any]]


@contextmanager
def calls(model: nn.Module) -> Iterator[Calls]:
    """What each module, and each step of an attention, was given and gave back, by its path.

    with calls(model) as seen:
        model(tokens)
    (q, k, bias), scores = seen["stack.blocks.0.attention.scores"]
    """
    seen: Calls = {}

    def kept(path: str, step: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def call(*given: Any) -> Tensor:
            seen[path] = given, step(*given)
            return seen[path][1]

        return call

    with ExitStack() as afterwards:
        for path, module in model.named_modules():

            def keep(_module: nn.Module, given: Any, out: Any, path: str = path) -> None:
                seen[path] = given, out

            afterwards.callback(module.register_forward_hook(keep).remove)
            for step in STEPS if isinstance(module, Attention) else ():
                own = vars(module).get(step)  # a replaced step, as in another `calls` block
                undo = (
                    partial(setattr, module, step, own) if own else partial(delattr, module, step)
                )
                setattr(module, step, kept(f"{path}.{step}", getattr(module, step)))
                afterwards.callback(undo)
        yield seen
