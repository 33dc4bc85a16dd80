"""`BytePair` against the `tokenizers` library: training and encoding.

make bench NAME=bpe

Both learn 1,000 tokens from the same 5 MB of presidents' speeches, in turns, each with all the
threads that it takes by itself; times are those on the wall, and the ratio is the median of that of
pairs. The merges must be the same. Bar: at most 3 times the library's time. Then both cut the text
with GPT-2's vocabulary, ours first with no word known.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from tokenizers import ByteLevelBPETokenizer

from attnbook import assets
from attnbook.text.speeches import speeches
from attnbook.text.tokenizers import BytePair
from benchmarks import _stored

SIZE, VOCAB_SIZE, PAIRS, BAR, MEGABYTES = 5_000_000, 1000, 5, 3.0, 1.0
OPTIONS: dict[str, Any] = {"vocab_size": VOCAB_SIZE - 1, "show_progress": False}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def theirs(texts: list[str]) -> ByteLevelBPETokenizer:
    """The library's tokenizer after training."""
    tokenizer: Any = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, **OPTIONS)
    return tokenizer


def main() -> None:
    texts, size = [], 0
    for speech in speeches("train"):
        texts.append(speech.text[: SIZE - size])
        size += len(texts[-1])
    pairs, same = [], True
    for turn in range(PAIRS + 1):
        ours, other = (lambda: BytePair.train(texts, VOCAB_SIZE)), (lambda: theirs(texts))
        if turn % 2:  # alternate the order
            (b, library), (a, own) = timed(other), timed(ours)
        else:
            (a, own), (b, library) = timed(ours), timed(other)
        same &= list(own.vocab.tokens[:-1]) == sorted(
            library.get_vocab(), key=library.get_vocab().__getitem__
        )
        pairs.append((a, b, a / b))
    a, b, ratio = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    print(f"train {size / 1e6:.1f} MB, {VOCAB_SIZE} tokens: ours {a:.2f} s, tokenizers {b:.2f} s")
    spread = f"{min(r for *_, r in pairs[1:]):.2f} to {max(r for *_, r in pairs[1:]):.2f}"
    print(f"ratio {ratio:.2f} ({spread}), same tokens: {same}")

    folder, text = assets.fetch("gpt2-bpe"), "\n\n".join(texts)
    gpt2 = BytePair.load(folder)
    library = ByteLevelBPETokenizer(str(folder / "encoder.json"), str(folder / "vocab.bpe"))
    first, ids = timed(lambda: gpt2.encode(text))
    again, _ = timed(lambda: gpt2.encode(text))
    other, encoding = timed(lambda: library.encode(text))
    same &= ids == encoding.ids
    first, again, other = (len(text.encode()) / 1e6 / seconds for seconds in (first, again, other))
    print(f"encode, MB a second: ours {first:.1f}, words known {again:.1f}, tokenizers {other:.1f}")
    what, library = f"byte pairs: training, {VOCAB_SIZE} tokens of 5 MB", "tokenizers"
    rows = [
        _stored.against(what, "s", pairs[1:], library, package=library, bar=1 / BAR),
        *(
            _stored.against(
                f"byte pairs: cutting {case}",
                "MB/s",
                [(mine, other)],
                library,
                package=library,
                more=True,
            )
            for case, mine in {"at first": first, "words that are known": again}.items()
        ),
        _stored.budget(
            "byte pairs: cutting words that are known", "MB/s", [again], MEGABYTES, more=True
        ),
    ]
    _stored.finish(__file__, rows, right=same)


if __name__ == "__main__":
    main()
