"""Cached greedy generation of `TransformerDecoder` against `generate` of `transformers`.

make bench NAME=generation

Both have the weights of one random model of the GPT-2 family, stored by `transformers` and read by
`load_gpt2`, and go on with one prompt, a row at a time, on one thread. They take turns in one
process; the ratio is the median of that of pairs of turns, in processor time, which other programs
disturb less. Bar: the same ids, up to a word that is as likely as another but for rounding, and at
least 1.5 times the tokens a second in the book's size. A larger one waits for its matrix products.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from attnbook.model.transformer import TransformerDecoder
from attnbook.weights.pretrained import load_gpt2
from benchmarks import _stored

BAR, PAIRS, PROMPT, NEW, TIE = 1.5, 9, 8, 200, 1e-4
SIZES = {  # layers, heads, size of vectors, vocabulary: the book's, and 25 million parameters
    "book": (4, 4, 128, 1024),
    "larger": (8, 8, 512, 1024),
}


def models(n_layer: int, n_head: int, n_embd: int, vocab: int) -> tuple[TransformerDecoder, Any]:
    """One model in both libraries. Its weights are large, so that words do not repeat at once."""
    end: dict[str, Any] = {
        "bos_token_id": vocab - 1,
        "eos_token_id": vocab - 1,
        "pad_token_id": vocab - 1,
    }
    sizes: dict[str, Any] = {
        "n_layer": n_layer,
        "n_head": n_head,
        "n_embd": n_embd,
        "vocab_size": vocab,
    }
    theirs: Any = GPT2LMHeadModel(
        GPT2Config(**sizes, **end, n_positions=256, initializer_range=0.1)
    )
    with tempfile.TemporaryDirectory() as folder:
        theirs.eval().save_pretrained(folder)
        return load_gpt2(folder), theirs


def agree(model: Any, prompt: Tensor, here: Tensor, there: Tensor) -> bool:
    """Whether ids are the same, or the first two that differ have equal scores up to rounding."""
    if here.equal(there):
        return True
    part = int((here != there).nonzero()[0, 1])
    with torch.no_grad():
        scores = model(torch.cat([prompt, there[:, :part]], 1)).logits[0, -1]
    return abs(float(scores[here[0, part]] - scores[there[0, part]])) < TIE


def timed(generate: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Seconds of processor time, and the ids."""
    start = time.process_time()
    ids = generate()
    return time.process_time() - start, ids


def main() -> None:
    torch.set_num_threads(1)
    rows, right = [], True
    print("          ours, tokens a second    transformers   ratio")
    for name, sizes in SIZES.items():
        torch.manual_seed(0)
        ours, theirs = models(*sizes)
        prompt = torch.randint(sizes[-1] - 1, (1, PROMPT))

        def mine(model: TransformerDecoder = ours, prompt: Tensor = prompt) -> Tensor:
            return model.generate(prompt, NEW).tokens

        def other(model: Any = theirs, prompt: Tensor = prompt) -> Tensor:
            asked = {"max_new_tokens": NEW, "do_sample": False, "use_cache": True}
            ids = model.generate(prompt, attention_mask=torch.ones_like(prompt), **asked)
            return ids[:, PROMPT:]

        pairs, same, n, here = [], True, 0, prompt
        for turn in range(PAIRS + 1):
            if turn % 2:  # alternate the order
                (b, there), (a, here) = timed(other), timed(mine)
            else:
                (a, here), (b, there) = timed(mine), timed(other)
            same &= agree(theirs, prompt, here, there)
            n = here.shape[1]
            pairs.append((n / a, n / b, b / a))
        a, b, ratio = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
        said = f"{n} tokens, {len(set(here[0].tolist()))} different"
        print(f"{name:8} {a:22.0f} {b:15.0f} {ratio:7.2f}   {said}, same ids: {same}")
        right &= same
        what, peer = f"writing with a cache, {name} size", "transformers"
        asked: dict[str, Any] = {"package": peer, "bar": BAR if name == "book" else None}
        rows.append(_stored.against(what, "tokens/s", pairs[1:], peer, more=True, **asked))
    _stored.finish(__file__, rows, right=right)


if __name__ == "__main__":
    main()
