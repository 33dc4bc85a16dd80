"""ModelMap: GPT or BERT as one tower, with all its parts, its parameters and its cache."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.checks import check_choice, check_whole
from attnbook.model.config import TransformerConfig
from attnbook.show.blocks import transformer
from attnbook.show.picture import Picture
from attnbook.show.plots import INK, ROLES
from attnbook.web._widget import Widget, WidgetError
from attnbook.web.model_map import models as told
from attnbook.web.transformer_map.pictures import drawn, size


class ModelMap(Widget):
    """A decoder or an encoder in one drawing, its parameters by part, and each part's names.

        ModelMap({"GPT-2": GPT_2}, 50257)
        ModelMap({"GPT-2": GPT_2, "SmolLM2": SMOLLM2}, [50257, 49152])
        ModelMap({"BERT": BERT}, 30522, shape="encoder")

    Pressing a part shows its names: here, in papers, and in `transformers`. A second model shares
    the picture: its parts can be swapped in one by one or, if its sizes differ too, all at once.

    Args:
        models: name -> configuration, of one or two models.
        vocab_size: number of tokens in the vocabulary, one number for all or one for each model.
        shape: "decoder", or "encoder", which is BERT with its two output layers.
        n_tokens: number of tokens in the cache.
        n_bytes: bytes per number in the cache.
        worked: name of an exchange -> rows of a label, a role, numbers as text and an explanation;
            they open with the second model's part. `attnbook.walks.modern_parts` makes some.
        title: the heading.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `exchanged` (the names of what is exchanged, or "all") and `part` (the open part,
    "" for none) track the reader's choices; setting them changes what is shown.

    Raises:
        ValueError: if models are not one or two configurations with a vocabulary size each, or
            their parts are not those of the drawing.

    Source: Radford et al. 2019; Devlin et al. 2019; Grattafiori et al. 2024.
    """

    _esm, _css = bundles.load("ModelMap")

    pictures = traitlets.List().tag(sync=True)
    models = traitlets.List().tag(sync=True)
    changes = traitlets.List().tag(sync=True)
    ledgers = traitlets.Dict().tag(sync=True)
    rows = traitlets.List().tag(sync=True)
    cache = traitlets.List().tag(sync=True)
    worked = traitlets.Dict().tag(sync=True)
    exchanged = traitlets.List(traitlets.Unicode()).tag(sync=True)
    part = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        models: Mapping[str, TransformerConfig],
        vocab_size: int | Sequence[int],
        *,
        shape: str = "decoder",
        n_tokens: int = 1024,
        n_bytes: int = 2,
        worked: Mapping[str, Sequence[tuple[str, str, list[str], str]]] | None = None,
        title: str = "",
        name: str | None = None,
    ) -> None:
        check_choice(("decoder", "encoder"), shape=shape)
        for key, config in models.items():
            if not isinstance(config, TransformerConfig):
                raise WidgetError(f"models[{key!r}] must be a TransformerConfig, not {config!r}")
        check_whole(1, n_tokens=n_tokens, n_bytes=n_bytes)
        configs = [*models.values()]
        sizes = [*vocab_size] if isinstance(vocab_size, Sequence) else [vocab_size] * len(configs)
        if len(configs) not in (1, 2) or len(sizes) != len(configs):
            found = f"{len(configs)} with {sizes}"
            raise WidgetError(f"models must be one or two, each with a vocab_size, not {found}")
        self.shape, self.looks = shape, [told.look(config, shape) for config in configs]
        names = told.changes(configs[0], configs[-1]) if sizes[0] == sizes[-1] else []
        only = [part for each in names for part in told.CHANGES[each][1]]
        check_choice(["", *names], **{f"worked {n}": each for n, each in enumerate(worked or {})})
        super().__init__(
            name=name,
            title=title,
            pictures=[drawn(look, shape, only if n else ()) for n, look in enumerate(self.looks)],
            models=[
                {"name": key, "names": told.names_of(config, shape)}
                for key, config in models.items()
            ],
            changes=[told.change(each, configs) for each in names],
            rows=told.rows(configs[0], sizes[0], shape),
            ledgers=told.ledgers(configs, names, sizes, shape),
            cache=[n_tokens, n_bytes],
            worked={key: [[*row] for row in rows] for key, rows in (worked or {}).items()},
        )

    @traitlets.validate("exchanged")
    def _check_exchanged(self, proposal: Any) -> list[str]:
        known = [each["name"] for each in self.changes] or ["all"] * (len(self.models) > 1)
        if unknown := {*proposal["value"]} - {*known}:
            raise WidgetError(f"exchanged must be of {known}, not {sorted(unknown)}")
        return [name for name in known if name in proposal["value"]]

    @traitlets.validate("part")
    def _check_part(self, proposal: Any) -> str:
        known = ["", *dict.fromkeys(part for model in self.models for part in model["names"])]
        if proposal["value"] not in known:
            raise WidgetError(f"part must be one of {known}, not {proposal['value']!r}")
        return proposal["value"]

    def ledger(self) -> dict[str, int]:
        """The shown model's parameters by part and, for a decoder, the bytes of its whole cache."""
        found = dict(zip(self.rows, self.ledgers[" ".join(self.exchanged)], strict=True))
        return (
            found | {"cache": math.prod((found["cache"], *self.cache))}
            if "cache" in found
            else found
        )

    def content(self) -> bytes:
        return json.dumps([self.ledgers, self.shape]).encode()

    def summary(self) -> str:
        return f"{self.shape}, {' and '.join(model['name'] for model in self.models)}"

    def figure_size(self) -> tuple[float, float]:
        return size(self.looks[0], self.shape, self.title)

    def draw(self, figure: Figure) -> None:
        look, part = self.looks[-1 if self.exchanged else 0], (self.part,) if self.part else ()
        Picture(transformer(look, part, shape=self.shape)).draw(figure.subplots(), ROLES, INK)
