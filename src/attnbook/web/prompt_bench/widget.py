"""PromptBench: a reader's prompts for a language model, with examples, candidates, a template."""

import json
import textwrap
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from attnbook import bundles
from attnbook.model.sampling import Sampling, draw, uniform
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.web._model_widget import brief
from attnbook.web._widget import Widget, WidgetError, as_list, as_tokens, check_size, format_number
from attnbook.web.playground.widget import token_name
from attnbook.weights.llama import SYSTEM, chat

SHOWN = 8  # of the likeliest next tokens
LONGEST, EXAMPLES, CANDIDATES = 2000, 12, 8  # at most: characters of a text, examples, words
MARK = "<|im_start|>"  # a tokenizer with this token knows the template


class Preset(NamedTuple):
    """A prompt that the reader of a `PromptBench` can choose.

        prompt = form(example) label \\n\\n ... form(text)

    with {} in the form replaced by a text. A form without {} is itself the last question, and each
    example's text is a whole prompt.

    Attributes:
        name: the label of its button.
        form: the prompt, with {} where a text goes.
        text: the text that the prompt asks about.
        candidates: continuations to compare, with the leading space that they have in a text.
        examples: pairs of a text and a label, which come first; labels have their space, too.
        system: instructions; the prompt is then the user's turn in the chat template of SmolLM2.
            None leaves the prompt as it is.
        begin: how the answer begins, after the chat template.
    """

    name: str
    form: str
    text: str = ""
    candidates: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    system: str | None = None
    begin: str = ""

    def asked(self) -> dict[str, Any]:
        """The prompt in the page's format."""
        plain = self.system is None
        lists = {"examples": self.examples, "candidates": self.candidates}
        texts = {"form": self.form, "text": self.text, "begin": self.begin}
        return {**lists, **texts, "chat": not plain, "system": SYSTEM if plain else self.system}


class PromptBench(Widget):
    """A language model that answers prompts: what comes next, and how likely each candidate is.

        log P(c) = sum over i of log P(c_i | prompt, c_1 .. c_(i-1)),   share = P(c) / sum P(c')

    with c_i the tokens of candidate c. The reader changes the prompt, its examples and their order,
    the candidates, the chat template and the system prompt, and lets the model write. Answers to
    the presets are stored. Other prompts are answered by a kernel, or by the model itself, if the
    site has its file and the reader loads it.

    Args:
        model: any decoder, in evaluation mode.
        tokenizer: the model's.
        presets: prompts to choose from.
        shown: index of the preset that is shown first.
        steps: number of tokens that the model writes after each preset, greedily; they are stored.
        temperature: the temperature at which the model writes; 0 is greedy.
        seed: determines the random numbers.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    Raises:
        ValueError: if the model is in training mode, a preset is unusable (its prompt is empty or
            exceeds the context, or a candidate occurs twice), or a number is out of range.

    Source: Brown et al. 2020; Schick and Schütze 2021.
    """

    _esm, _css = bundles.load("PromptBench")

    presets = traitlets.List(traitlets.Dict()).tag(sync=True)  # name, asked, answer
    asked = traitlets.Dict().tag(sync=True)
    template = traitlets.Unicode().tag(sync=True)  # with {system} and {user}; "" if there is none
    special = traitlets.List(traitlets.Unicode()).tag(sync=True)  # tokens
    sizes = traitlets.Dict().tag(sync=True)
    temperature = traitlets.Float(0.0).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        model: TransformerDecoder,
        tokenizer: BytePair,
        presets: Iterable[Preset],
        *,
        shown: int = 0,
        steps: int = 24,
        temperature: float | int = 0,
        seed: int = 0,
        title: str = "",
        name: str | None = None,
    ) -> None:
        if model.training:
            raise WidgetError("model must be in evaluation mode: call model.eval()")
        self._model, self._tokenizer = model, tokenizer
        given = as_list(presets, "presets", "Preset")
        if not given or (wrong := [each for each in given if not isinstance(each, Preset)]):
            raise WidgetError(f"presets must be one Preset or more, not {wrong if given else []!r}")
        room = model.stack.config.max_len
        for what, value, least, most in (
            ("shown", shown, 0, len(given) - 1),
            ("steps", steps, 0, room),
        ):
            if not isinstance(value, int) or not least <= value <= most:
                raise WidgetError(f"{what} must be {least}..{most}, not {value}")
        tokens = model.vocab.tokens
        self._marked = MARK in tokens
        self.sizes = {"vocab": len(tokens), "end": model.vocab.eos, "room": room}
        kept = [self._preset(each, steps) for each in given]
        check_size(len(json.dumps(kept)), "presets", "take fewer or shorter prompts")
        super().__init__(
            name=name,
            title=title,
            presets=kept,
            asked=kept[shown]["asked"],
            template=chat(("user", "{user}"), system="{system}") if self._marked else "",
            special=[tokens[i] for i in sorted(tokenizer.special)],
            temperature=temperature,
            seed=seed,
        )
        self.on_msg(self._hear)

    def _preset(self, preset: Preset, steps: int) -> dict[str, Any]:
        """A preset with its stored answer, and what the model writes."""
        try:
            asked = _checked(preset.asked())
            ids = self._encoded(asked)
            answer = self._answer_to(asked, ids)
            answer["written"] = self._names(self._greedy(ids, steps))
        except WidgetError as error:
            raise WidgetError(f"presets: {preset.name!r}: {error}") from None
        return {"name": preset.name, "asked": asked, "answer": answer}

    @traitlets.validate("asked")
    def _check_asked(self, proposal: Any) -> dict[str, Any]:
        return _checked(proposal["value"])

    @traitlets.validate("temperature", "seed")
    def _check_number(self, proposal: Any) -> float | int:
        trait, value = proposal["trait"].name, proposal["value"]
        most = {"temperature": 20, "seed": 10**6}[trait]
        if not 0 <= value <= most:
            raise WidgetError(f"{trait} must be 0..{most}, not {value}")
        return value

    # ---- the model

    def prompt(self, asked: Mapping[str, Any] | None = None) -> str:
        """The text that the model gets, with the chat template's markers if the template is on."""
        given = asked or self.asked
        form, hole = given["form"], "{}" in given["form"]
        shown = [
            f"{form.replace('{}', text) if hole else text}{label}\n\n"
            for text, label in given["examples"]
        ]
        whole = "".join(shown) + (form.replace("{}", given["text"]) if hole else form)
        if not given["chat"]:
            return whole
        return chat(("user", whole), system=given["system"]) + given["begin"]

    def _encoded(self, asked: Mapping[str, Any]) -> list[int]:
        """Token ids of the prompt, after checking that the model can answer it."""
        form, candidates, room = asked["form"], asked["candidates"], self.sizes["room"]
        if form.count("{}") > 1:
            raise WidgetError("the prompt must have one {} at most, where the text goes")
        if asked["chat"] and not self._marked:
            raise WidgetError(f"the tokenizer has no {MARK}, so it knows no chat template")
        if len({*candidates}) < len(candidates) or "" in candidates:
            raise WidgetError("each candidate must be written once, and not be empty")
        text = self.prompt(asked)
        if not text.strip():
            raise WidgetError("the prompt must not be empty")
        ids = self._tokenizer.encode(text, special=asked["chat"])
        rows = [self._tokenizer.encode(each) for each in candidates]
        if not ids or not all(rows):
            raise WidgetError("the vocabulary has no token for this text")
        size = len(ids) + max(map(len, rows), default=1) - 1
        if size > room:
            raise WidgetError(f"the prompt has {size} tokens; the model reads {room} at most")
        return ids

    @torch.no_grad()
    def _answer_to(self, asked: Mapping[str, Any], ids: list[int]) -> dict[str, Any]:
        """Tokens of the prompt, log-probabilities of candidates, and the likeliest next tokens."""
        logits, state = self._model.step(torch.tensor([ids]), self._model.start())
        first, found = logits[0].double().log_softmax(-1), []
        for text in asked["candidates"]:
            row, after = self._tokenizer.encode(text), state
            logp = first[row[0]]
            for i, j in pairwise(row):
                scores, after = self._model.step(torch.tensor([[i]]), after)
                logp = logp + scores[0].double().log_softmax(-1)[j]
            found.append({"text": text, "tokens": self._names(row), "logp": brief(logp)})
        best = first.topk(min(SHOWN, len(first))).indices.tolist()
        likely = [
            [i, name, brief(first[i])] for i, name in zip(best, self._names(best), strict=True)
        ]
        return {"tokens": self._names(ids), "candidates": found, "next": likely}

    @torch.no_grad()
    def _greedy(self, ids: list[int], steps: int) -> list[int]:
        """The most likely tokens, one by one, up to the end token."""
        state, row, new = self._model.start(), [], ids
        while len(row) < min(steps, self.sizes["room"] - len(ids)):
            logits, state = self._model.step(torch.tensor([new]), state)
            row.append(int(logits.argmax()))
            new = row[-1:]
            if new == [self.sizes["end"]]:
                break
        return row

    @torch.no_grad()
    def _next(self, ids: list[int], n: int, temperature: float, seed: int) -> int:
        """The token that random number n of a seed draws."""
        logits, _ = self._model.step(torch.tensor([ids]), self._model.start())
        nothing = torch.zeros(1, 0, dtype=torch.long)  # temperature needs no earlier tokens
        left = Sampling(temperature=temperature)(logits.double(), nothing)
        return int(draw(left, uniform(torch.tensor([seed]), n)))

    def _names(self, ids: list[int]) -> list[str]:
        return [token_name(self._tokenizer, i) for i in ids]

    # ---- with a kernel

    def _hear(self, _: Any, content: Any, buffers: Any) -> None:
        """Reply to the page: to {number, ask} an answer, to {number, write, written} a token."""
        if not isinstance(content, dict) or not isinstance(content.get("number"), int):
            return
        number = {"number": content["number"]}
        try:
            if "ask" in content:
                asked = _checked(content["ask"])
                self.send({**number, "answer": self._answer_to(asked, self._encoded(asked))})
            elif "write" in content:
                self.send({**number, **self._write(content)})
        except WidgetError as error:
            self.send({**number, "error": str(error)})

    def _write(self, content: dict[str, Any]) -> dict[str, Any]:
        written = content.get("written")
        size, room = self.sizes["vocab"], self.sizes["room"]
        if not isinstance(written, list) or not all(
            isinstance(i, int) and 0 <= i < size for i in written
        ):
            raise WidgetError(f"written must be ids of tokens, 0..{size - 1}, not {written!r}")
        ids = [*self._encoded(_checked(content["write"])), *written]
        if len(ids) >= room:
            raise WidgetError(f"the model reads {room} tokens at most")
        i = self._next(ids, len(written), self.temperature, self.seed)
        return {"id": i, "name": token_name(self._tokenizer, i)}

    # ---- the picture

    def content(self) -> bytes:
        return json.dumps([self.presets, self.asked]).encode()

    def summary(self) -> str:
        return f"{len(self.presets)} prompts"

    def draw(self, figure: Figure) -> None:
        answer = self._answer_to(self.asked, self._encoded(self.asked))
        prompt = textwrap.fill(textwrap.shorten(self.prompt(), 300), 72)
        figure.supxlabel(prompt, fontsize=8, parse_math=False)
        axis = figure.subplots()
        found = [(each["text"], each["logp"]) for each in answer["candidates"]]
        names, logp = zip(*(found or [pair[1:] for pair in answer["next"]]), strict=True)
        shares = Tensor(logp).softmax(0) if found else Tensor(logp).exp()
        bars = axis.barh(range(len(names)), shares.tolist(), 0.6, color="#2b6cb0")
        axis.bar_label(bars, [format_number(p) for p in shares.tolist()], padding=3, fontsize=8)
        shown = [name.replace("\n", "↵").replace(" ", "␣") for name in names]
        axis.set_yticks(range(len(names)), shown, fontsize=8, parse_math=False)
        axis.invert_yaxis()
        axis.set_xlim(0, 1.2 * max(shares.tolist()))
        label = "share among the candidates" if found else "probability of the next token"
        axis.set_xlabel(label, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)


def _checked(asked: Any) -> dict[str, Any]:
    """The prompt, after checking its format; `_encoded` checks the rest when it is asked."""
    keys = {"form", "text", "examples", "candidates", "chat", "system", "begin"}
    if not isinstance(asked, Mapping) or {*asked} != keys:
        raise WidgetError(f"asked must have {', '.join(sorted(keys))}, not {asked!r}")
    texts = [asked[what] for what in ("form", "text", "system", "begin")]
    pairs = as_list(asked["examples"], "examples", "pairs of a text and a label")
    examples = [as_list(each, "examples", "pairs of a text and a label") for each in pairs]
    if len(examples) > EXAMPLES or any(len(each) != 2 for each in examples):
        raise WidgetError(f"examples must be {EXAMPLES} pairs of a text and a label at most")
    candidates = as_list(asked["candidates"], "candidates", "texts")
    if len(candidates) > CANDIDATES:
        raise WidgetError(f"candidates must be {CANDIDATES} texts at most, not {len(candidates)}")
    every = as_tokens([*texts, *candidates, *(text for pair in examples for text in pair)], "asked")
    if long := [text for text in every if len(text) > LONGEST]:
        raise WidgetError(f"a text must have {LONGEST} characters at most, not {len(long[0])}")
    if any("\n" in text for text in candidates):
        raise WidgetError("candidates must be texts without a line end: each is one line")
    if not isinstance(asked["chat"], bool):
        raise WidgetError(f"chat must be True or False, not {asked['chat']!r}")
    return {**asked, "examples": examples, "candidates": candidates}
