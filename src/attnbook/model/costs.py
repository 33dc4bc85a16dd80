"""What a computation costs: operations and memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from attnbook.checks import check_choice, check_flags, check_kind, check_whole
from attnbook.model.config import TransformerConfig


def operations(loss: Callable[[], Float[Tensor, ""]]) -> int:
    """Multiplications and additions in the matrix products of a training step.

    Counted while the loss is computed and its gradients, so that they hold for any model. Fused
    attention is counted as the same attention without fusing, with masked scores: PyTorch's
    counter does not see it on a CPU. Softmax, norms and other work on single numbers are left out.

    Args:
        loss: computes the loss of a batch; gradients are added to its parameters.
    """
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        loss().backward()
    return counter.get_total_flops()


def most_bytes(run: Callable[[], object]) -> int:
    """The most memory in bytes that a computation on the CPU holds at once.

    What was there before does not count: weights and inputs made outside of `run`. Every call of
    PyTorch's allocator counts, so that what a fused kernel takes for itself does too. The objects
    that remember the steps for the backward pass are no tensors and do not count: they matter where
    steps are many and small, as in a recurrent network.

    Args:
        run: is called once. Many small steps take long: the profiler notes each.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        run()
    assert found.profiler and found.profiler.kineto_results
    events: list[Any] = found.profiler.kineto_results.events()
    events = [event for event in events if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()  # negative when memory is given back
        most = max(most, held)
    return most


class StepCost(NamedTuple):
    """What it takes to write one token: operations, and bytes.

    Attributes:
        operations: multiplications and additions in matrix products.
        parameters: bytes of the blocks' matrices.
        cache: bytes of the keys and values that are kept.
        scores: bytes of the scores of one block, where they are kept (fused attention does not).
    """

    operations: int
    parameters: int
    cache: int
    scores: int

    @property
    def intensity(self) -> float:
        """Operations for each byte that is read: of parameters and cache, each once.

        Source: Williams et al. 2009 (operational intensity).
        """
        return self.operations / (self.parameters + self.cache)

    def seconds(self, speed: float | int, bandwidth: float | int) -> tuple[float, float]:
        """How long arithmetic takes, and memory: each parameter and each kept number is read once.

        What takes longer bounds the step: a processor reads while it computes.

        Args:
            speed: operations a second.
            bandwidth: bytes a second.

        Raises:
            ValueError: if one of them is not above 0.

        Source: Williams et al. 2009 (the roofline model).
        """
        for name, value in {"speed": speed, "bandwidth": bandwidth}.items():
            if not value > 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        return self.operations / speed, (self.parameters + self.cache) / bandwidth


def step_cost(
    n: int,
    d_model: int,
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    *,
    batch: int = 1,
    cache: bool = True,
    size: int = 2,
) -> StepCost:
    """What the blocks of a decoder need to write the next token of each text.

    P = 2 d^2 + 2 d d_kv + 8 d^2,  d_kv = d n_kv_heads / n_heads
    operations = batch n_layers m (2 P + 4 n d),  m = 1 with a cache, n without

    P are the matrices of a block: queries and output, keys and values, feed-forward. Embedding,
    output matrix, norms, softmax and biases are left out.

    Args:
        n: tokens of each text so far, the newest among them.
        d_model, n_layers, n_heads, n_kv_heads: as of `TransformerConfig`; d_ff is 4 d, or 8/3 d
            with a gate.
        batch: how many texts are written at a time.
        cache: whether the keys and values of earlier tokens are kept; without, all are read anew.
        size: bytes of a number.

    Raises:
        ValueError: if a size is no whole number above 0, or n_heads does not divide d_model, or
            n_kv_heads n_heads.

    Source: Kaplan et al. 2020, section 2.1; Shazeer 2019, section 2.4.
    """
    sizes = {"n": n, "d_model": d_model, "n_layers": n_layers, "n_heads": n_heads}
    check_whole(1, **sizes, n_kv_heads=n_kv_heads, batch=batch, size=size)
    check_flags(cache=cache)
    if d_model % n_heads or n_heads % n_kv_heads:
        raise ValueError(
            "n_heads must divide d_model, and n_kv_heads n_heads, got"
            f" {d_model}, {n_heads}, {n_kv_heads}"
        )
    d_kv, asked = d_model // n_heads * n_kv_heads, 1 if cache else n
    matrices = (2 + 8) * d_model**2 + 2 * d_model * d_kv  # 8 d^2: feed-forward
    return StepCost(
        operations=batch * n_layers * asked * (2 * matrices + 4 * n * d_model),
        parameters=n_layers * matrices * size,
        cache=2 * batch * n_layers * n * d_kv * size if cache else 0,
        scores=batch * n_heads * asked * n * size,
    )


def parameters(
    config: TransformerConfig, vocab_size: int, *, shape: str = "decoder"
) -> dict[str, int]:
    """The parameters of a model by its parts, as `attnbook.show.transformer` names them.

    attention = n_layers (2 d h k + 2 d g k),   feed-forward = n_layers m d d_ff

    and biases, with d = d_model, h heads of queries and g of keys, each of k numbers, and m = 3
    matrices in a gated network, 2 in another. What has none, as rotary positions, is 0.

    Args:
        config: sizes and choices.
        vocab_size: number of tokens.
        shape: "decoder" (`TransformerDecoder`) or "encoder" (`Bert`, with its two output layers).

    Raises:
        ValueError: if config is of another class, vocab_size below 1, or shape another.
    """
    check_kind(TransformerConfig, config=config)
    check_whole(1, vocab_size=vocab_size)
    check_choice(("decoder", "encoder"), shape=shape)
    d, layers, b = config.d_model, config.n_layers, int(config.bias)
    asks = config.n_heads * config.head_size
    keys = (config.n_kv_heads or config.n_heads) * config.head_size
    network = (1 + config.gated) * (d + b) * config.d_ff + (config.d_ff + b) * d
    norm = 2 * d if config.normalizer == "layer" else d
    last = config.norm == "pre" if config.final_norm is None else config.final_norm
    norms = (1 + (config.d_ff > 0)) * layers * (config.norm != "none")
    learned = config.max_len * (config.positions == "learned")
    attention = (d + b) * (asks + 2 * keys) + (asks + b) * d
    attention += 2 * config.head_size * config.qk_norm
    counts = {
        "embedding": vocab_size * d,
        "positions": (learned + config.n_segments) * d,
        "norm": (norms + last + config.embedding_norm) * norm,
        "attention": layers * attention,
        "feed-forward": layers * network * (config.d_ff > 0),
    }
    if shape == "decoder":
        return counts | {"output": 0 if config.tied else vocab_size * d}
    return counts | {"words": (d + 1) * d + norm + vocab_size, "next": (d + 1) * d + 2 * (d + 1)}
