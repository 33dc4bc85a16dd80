"""DecodingBench: a stored tree of a real model's distributions, to filter, draw from and follow."""

import base64
import json
import textwrap
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from attnbook import bundles
from attnbook.model.decoding import select_rows
from attnbook.model.sampling import Sampling, draw, uniform
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.web._widget import Widget, WidgetError, as_list, as_tokens, format_number, short
from attnbook.web.playground.widget import token_name

SHOWN = 10  # bars
BINS, BEND = 48, 1.5  # histogram of all other tokens; bins are narrower at high probabilities
MOST_BYTES = 60_000  # limit of a stored tree, compressed
MOST_LETTERS = 500  # of a reader's own beginning
METHODS = {
    "as it is": Sampling(),
    "greedy": Sampling(temperature=0),
    "temperature 0.7": Sampling(temperature=0.7),
    "top-k 50": Sampling(top_k=50),
    "top-p 0.9": Sampling(top_p=0.9),
    "min-p 0.1": Sampling(min_p=0.1),
}
FILTERS = ("temperature", "top_k", "top_p", "min_p")


class DecodingBench(Widget):
    """A model's distributions after a prompt and its possible continuations, stored as a tree.

        p = softmax(log P / t),   next = the first token at which the sum of q is above u

    with P the model's probabilities, t the temperature, q the renormalised probabilities of the
    tokens that pass the filters (top-k, then top-p, then min-p, as in `Sampling`), most likely
    first, and u in 0 .. 1 a random number for each position, set by the seed. The reader takes the
    drawn token or any other and sees the model's next distribution, as far as the tree goes. Beyond
    it a kernel answers, or the model itself, if the site has its file and the reader loads it.

    The tree holds the greedy path, the most likely tokens along it, and draws by each method with
    several seeds. For each node it stores the `keep` most likely tokens with their
    log-probabilities in 32 bits, and how many of the others lie in each of 48 ranges of
    log-probability. Where those others matter, entropy and the number of tokens that pass a filter
    are accurate to a few percent.

    Args:
        model: any decoder, in evaluation mode.
        tokenizer: the model's.
        prompt: the text to continue.
        methods: name -> settings that the reader can choose; draws with each are stored.
        steps: how many tokens after the prompt are stored, at most.
        seeds: number of draws that are stored for each method, with seeds from 0.
        keep: how many of the most likely tokens are stored individually.
        temperature: 0 (greedy) or more.
        top_k: how many tokens top-k keeps; 0 turns it off.
        top_p: above 0 and at most 1; 1 turns it off.
        min_p: 0 .. 1; 0 turns it off.
        seed: determines the random numbers.
        written: ids of the tokens after the prompt.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, the four filters, `seed` and `written` track the reader's choices, `written` as
    long as the text begins with the prompt; setting them changes what is shown.

    Raises:
        ValueError: if the model is in training mode, the prompt exceeds its context, or the
            compressed tree takes more than 60,000 bytes.

    Source: Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p), Nguyen et al. 2025 (min-p).
    """

    _esm, _css = bundles.load("DecodingBench")

    prompt = traitlets.List(traitlets.Unicode()).tag(sync=True)  # its tokens, as shown
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)  # those that occur in the tree
    methods = traitlets.List(traitlets.Dict()).tag(sync=True)
    sizes = traitlets.Dict().tag(sync=True)
    tree = traitlets.Bytes().tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top_k = traitlets.Int(0).tag(sync=True)
    top_p = traitlets.Float(1.0).tag(sync=True)
    min_p = traitlets.Float(0.0).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    written = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(
        self,
        model: TransformerDecoder,
        tokenizer: BytePair,
        prompt: str,
        *,
        methods: Mapping[str, Sampling] = METHODS,
        steps: int = 8,
        seeds: int = 3,
        keep: int = 24,
        temperature: float | int = 1.0,
        top_k: int = 0,
        top_p: float | int = 1.0,
        min_p: float | int = 0.0,
        seed: int = 0,
        written: Any = (),
        title: str = "",
        name: str | None = None,
    ) -> None:
        self._tokenizer, self._ids = tokenizer, self._begin(model, tokenizer, prompt)
        size, room = len(model.vocab), model.stack.config.max_len - len(self._ids)
        for what, value, most in (("steps", steps, room), ("seeds", seeds, 1000)):
            if not isinstance(value, int) or not 0 <= value <= most:
                raise WidgetError(f"{what} must be 0..{most}, not {value}")
        if not isinstance(keep, int) or not SHOWN <= keep <= size:
            raise WidgetError(f"keep must be {SHOWN}..{size}, the vocabulary's size, not {keep}")
        self._end, self._model = model.vocab.eos, model
        self._steps, self._seeds, self._how = steps, seeds, dict(methods)
        ways = [_method(name, how) for name, how in self._how.items()]
        nodes = self._grow(keep)
        packed = self._packed(nodes, keep, "<u2" if size < 2**16 else "<u4")
        sizes = {"vocab": size, "keep": keep, "bins": BINS, "bend": BEND, "room": room}
        sizes |= {"end": self._end, "nodes": len(nodes), "ids": len(packed["tokens"])}
        super().__init__(
            name=name,
            title=title,
            prompt=[token_name(tokenizer, i) for i in self._ids],
            methods=ways,
            sizes=sizes,
            **packed,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            written=as_list(written, "written", "ids"),
        )
        self.on_msg(self._answer)

    @staticmethod
    def _begin(model: TransformerDecoder, tokenizer: BytePair, prompt: str) -> list[int]:
        (text,) = as_tokens([prompt], "prompt")
        ids = tokenizer.encode(text) or [model.vocab.bos]
        if model.training:
            raise WidgetError("model must be in evaluation mode: call model.eval()")
        if len(ids) > (most := model.stack.config.max_len):
            raise WidgetError(f"prompt must have at most {most} tokens, not {len(ids)}")
        return ids

    @traitlets.validate(*FILTERS, "seed")
    def _check_number(self, proposal: Any) -> float | int:
        trait, value = proposal["trait"].name, proposal["value"]
        most = {"top_p": 1, "min_p": 1, "seed": 10**6}.get(trait, np.inf)
        if not 0 <= value <= most or value == np.inf or (trait == "top_p" and not value):
            inside = f"0..{most}" if most < np.inf else "a finite number from 0 on"
            raise WidgetError(f"{trait} must be {inside}, not {value}")
        return value

    @traitlets.validate("written")
    def _check_written(self, proposal: Any) -> list[int]:
        size, room = self.sizes["vocab"], self.sizes["room"]
        if wrong := [i for i in proposal["value"] if not 0 <= i < size]:
            raise WidgetError(f"written must be ids of tokens, 0..{size - 1}, not {wrong[0]}")
        if len(proposal["value"]) > room:
            raise WidgetError(f"written must be {room} ids at most, not {len(proposal['value'])}")
        return proposal["value"]

    # ---- the tree

    @torch.no_grad()
    def _grow(self, keep: int) -> dict[tuple[int, ...], Any]:
        """The data to store for each node, by its path; paths of equal length form a batch."""
        found: dict[tuple[int, ...], Any] = {}
        draws = [(how, seed) for how in self._how.values() for seed in range(self._seeds)]
        walks: list[tuple[int, ...]] = [()] * (1 + len(draws))  # greedy first
        logits, state = self._model.step(torch.tensor([self._ids]), self._model.start())
        paths: list[tuple[int, ...]] = [()]
        for n in range(self._steps + 1):
            rows = dict(zip(paths, logits.double().log_softmax(-1), strict=True))
            found |= {path: _stored(logp.numpy(), keep) for path, logp in rows.items()}
            # other tokens that the reader could choose
            others = rows[walks[0]].topk(SHOWN if n == 0 else 3).indices if walks[0] in rows else ()
            grown: list[tuple[int, ...]] = [(*walks[0], int(i)) for i in others]
            for k, (how, seed) in enumerate([(Sampling(temperature=0), 0), *draws]):
                if walks[k] in rows:
                    left, seeds = self._left(rows[walks[k]], how), torch.tensor([seed])
                    walks[k] = (*walks[k], int(draw(left[None], uniform(seeds, n))))
                    grown.append(walks[k])
            at = {path: row for row, path in enumerate(paths)}
            paths = [path for path in dict.fromkeys(grown) if path[-1] != self._end]
            if n == self._steps or not paths:
                break
            state = select_rows(state, torch.tensor([at[path[:-1]] for path in paths]))
            logits, state = self._model.step(torch.tensor([path[-1:] for path in paths]), state)
        return found

    @torch.no_grad()
    def _logits(self, ids: list[int]) -> Tensor:
        """Logits `[vocab]` of the token that follows ids."""
        return self._model.step(torch.tensor([ids]), self._model.start())[0][0]

    def _logp(self, path: list[int]) -> Tensor:
        """Log-probabilities `[vocab]` of the token that follows the prompt and `path`."""
        return self._logits([*self._ids, *path]).double().log_softmax(-1)

    @staticmethod
    def _left(logp: Tensor, how: Sampling) -> Tensor:
        """A row's logits after the filters, none of which depends on the preceding text."""
        return how(logp[None], torch.zeros(1, 0, dtype=torch.long))[0]

    def _packed(self, nodes: dict[tuple[int, ...], Any], keep: int, kind: str) -> dict[str, Any]:
        """The tree in the format that the page reads (`tree.js`)."""
        ids = sorted({i for path, each in nodes.items() for i in (*path, *each["ids"].tolist())})
        place, at = {i: n for n, i in enumerate(ids)}, {path: n for n, path in enumerate(nodes)}
        parents = [[at[path[:-1]], place[path[-1]]] if path else [0, 0] for path in nodes]
        parts = [
            np.array(ids, "<u4"),
            np.array(parents, "<u2"),
            np.array([[place[i] for i in each["ids"].tolist()] for each in nodes.values()], "<u2"),
            np.stack([each["logp"] for each in nodes.values()]),
            np.stack([each["ends"] for each in nodes.values()]),
            np.stack([each["counts"] for each in nodes.values()]).astype(kind),
        ]
        tree, names = b"".join(part.tobytes() for part in parts), self._names(ids)
        size = len(zlib.compress(base64.b64encode(tree) + json.dumps(names).encode()))
        if size > MOST_BYTES:
            raise WidgetError(
                f"the tree of {len(nodes)} places takes {size:,} bytes compressed, more than"
                f" {MOST_BYTES:,}: take fewer steps, seeds or methods, or keep fewer tokens"
            )
        self.bytes = size
        return {"tree": tree, "tokens": names}

    def _names(self, ids: list[int]) -> list[str]:
        return [token_name(self._tokenizer, i) for i in ids]

    # ---- with a kernel

    def _answer(self, _: Any, content: Any, buffers: Any) -> None:
        """Answer the page: what the model is, the ids of a text, or the logits that follow ids."""
        size, room = self.sizes["vocab"], self._model.stack.config.max_len
        match content:
            case {"number": int(number), "begin": True}:
                told = {"names": self._names([*range(size)]), "start": self._model.vocab.bos}
                self.send({"number": number, **told, "room": room, "ids": self._ids})
            case {"number": int(number), "encode": str(text)} if len(text) <= MOST_LETTERS:
                self.send({"number": number, "ids": self._tokenizer.encode(text)[:room]})
            case {"number": int(number), "ids": list(ids)} if 0 < len(ids) <= room:
                if all(isinstance(i, int) and 0 <= i < size for i in ids):
                    logits = self._logits(ids).float().numpy().astype("<f4")
                    self.send({"number": number}, [logits.tobytes()])

    # ---- the picture

    @property
    def text(self) -> str:
        """The prompt and its continuation."""
        return self._tokenizer.decode([*self._ids, *self.written])

    def content(self) -> bytes:
        return self.tree + json.dumps([self.prompt, self.tokens]).encode()

    def summary(self) -> str:
        return f"{len(self.prompt)} tokens of a prompt, up to {self._steps} behind it"

    def draw(self, figure: Figure) -> None:
        shown = textwrap.fill(textwrap.shorten(self.text, 300), 72) + " …"
        figure.supxlabel(shown, fontsize=8, parse_math=False)
        axis = figure.subplots()
        if self._end in self.written:
            return axis.set_axis_off()
        how = Sampling(**{name: getattr(self, name) for name in FILTERS})
        logp = self._logp(list(self.written))
        left = self._left(logp, how)
        best = logp.topk(SHOWN).indices
        before, after = logp[best].exp().numpy(), left.softmax(-1)[best].numpy()
        places = np.arange(SHOWN)
        axis.barh(places - 0.2, before, 0.38, color="#b6bcc4", label="as the model says")
        bars = axis.barh(places + 0.2, after, 0.38, color="#2b6cb0", label="as it is drawn from")
        axis.bar_label(bars, [format_number(p) for p in after], padding=3, fontsize=8)
        names = [short(name.replace("\n", "↵")) for name in self._names(best.tolist())]
        axis.set_yticks(places, names, fontsize=8, parse_math=False)
        axis.invert_yaxis()
        axis.set_xlim(0, 1.2 * max(*before, *after))
        axis.legend(fontsize=8, frameon=False, loc="lower right")
        axis.spines[["top", "right"]].set_visible(False)


def _stored(logp: np.ndarray, keep: int) -> dict[str, np.ndarray]:
    """The most likely tokens of a node, and a histogram of the others' log-probabilities.

    A histogram has the highest value, the lowest, and the number of tokens in each range.
    """
    order = np.argsort(-logp, kind="stable")
    ids, rest = order[:keep], logp[order[keep:]]
    if not len(rest):
        return {"ids": ids, "logp": logp[ids].astype("<f4"), **_histogram(np.zeros(0), 0, 0)}
    return {"ids": ids, "logp": logp[ids].astype("<f4"), **_histogram(rest, rest[0], rest[-1])}


def _histogram(rest: np.ndarray, high: float, low: float) -> dict[str, np.ndarray]:
    edges = high - (high - low) * (np.arange(1, BINS + 1) / BINS) ** BEND
    below = np.searchsorted(-rest, -edges, side="right")
    below[-1] = len(rest)
    counts = np.diff(below, prepend=0)
    return {"ends": np.array([high, low], "<f4"), "counts": counts}


def _method(name: str, how: Sampling) -> dict[str, Any]:
    """A method in the page's format."""
    if not isinstance(how, Sampling):
        raise WidgetError(f"methods must be of Sampling(...), not {name!r}: {how!r}")
    given = {each: getattr(how, each) for each in FILTERS}
    if how != Sampling(**given):
        raise WidgetError(f"methods must be of {', '.join(FILTERS)} alone, not {name!r}: {how}")
    return {"name": name, **given}
