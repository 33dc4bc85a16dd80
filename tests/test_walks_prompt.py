"""What the walk from a sentence to a label shows is what the model computes."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attnbook.model.config import GPT_2
from attnbook.model.prompting import Wording
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.walks import prompt_label
from attnbook.web import Drawing

TOKENIZER = BytePair.train(['The mood of "we like to sing" is: good bad odd. No?'] * 4, 320)
CONFIG = replace(GPT_2, d_model=12, n_heads=3, d_ff=20, n_layers=2, max_len=60, init_std=0.4)
WORDING = Wording('The mood of "{}" is:', (" bad", " good"))


def decoder() -> TransformerDecoder:
    torch.manual_seed(0)
    return TransformerDecoder(TOKENIZER.vocab, CONFIG).eval()


def drawn(drawing: Drawing, name: str) -> Tensor:
    places = [place.part for place in drawing.picture.find(name)]
    return torch.tensor([part.values.tolist() for part in places if part.values is not None])


@pytest.mark.parametrize(
    "labels", [(" bad", " good"), (" good", " bad"), (" bad", " odd", " good")]
)
def test_numbers_and_answer(labels: tuple[str, ...]) -> None:
    model, wording = decoder(), Wording(WORDING.text, labels)
    walk = prompt_label(model, TOKENIZER, wording, "we like to sing", top=3, name="mood")
    ids = TOKENIZER.encode('The mood of "we like to sing" is:')
    with torch.no_grad():
        logits = model(torch.tensor([ids]))[0, -1]
    shares = (logits - logits.logsumexp(0)).exp()
    words = torch.tensor([TOKENIZER.encode(label)[0] for label in labels])
    torch.testing.assert_close(drawn(walk, "bars")[0], shares.sort(descending=True).values[:3])
    torch.testing.assert_close(drawn(walk, "labels")[:, 0], shares[words])
    alone = shares[words] / shares[words].sum()
    torch.testing.assert_close(drawn(walk, "between")[0], alone)
    best = int(alone.argmax())
    captions = [step["caption"] for step in walk.steps]
    assert f"a prompt of {len(ids)} tokens" in captions[1]
    assert f"each of {len(shares):,} tokens" in captions[2]
    assert f"gets {shares.max():.2g}" in captions[3] or f"gets {shares.max():.2f}" in captions[3]
    rank = int((shares > shares[words[best]]).sum()) + 1
    assert f"[“␣{labels[best].strip()}”](labels.{best})" in captions[4]
    assert f"[place](ranks.{best}) {rank} of all" in captions[4]
    assert f"gives “␣{labels[best].strip()}” {alone.max():.2f}" in captions[5]
    assert len(captions) == 7
    assert f">{labels[best].strip()}</text>" in walk.svg


def test_which_tokens_are_of_the_sentence() -> None:
    walk = prompt_label(decoder(), TOKENIZER, WORDING, "we sing No?")
    ids = TOKENIZER.encode(WORDING.ask("we sing No?"))
    inside, around = (len(walk.picture.find(name)) for name in ("inside", "around"))
    assert inside + around == len(ids)
    shown = "".join(TOKENIZER.decode([i]) for i in ids)
    begin = len(TOKENIZER.encode('The mood of "'))
    assert shown.index("we sing") == len(TOKENIZER.decode(ids[:begin]))
    assert inside == len(ids) - begin - len(TOKENIZER.encode('" is:'))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="labels must be one token each, got 5 for ' quxx'"):
        prompt_label(decoder(), TOKENIZER, Wording("{} is", (" quxx", " good")), "sing")
    with pytest.raises(ValueError, match="top must be a whole number of at least 1, got 0"):
        prompt_label(decoder(), TOKENIZER, WORDING, "sing", top=0)
    with pytest.raises(ValueError):
        prompt_label(decoder(), TOKENIZER, WORDING, "sing " * 30)
