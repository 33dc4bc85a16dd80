"""The planted errors of chapter 6: each runs, and each is caught by a test of the sound code."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import test_block
import test_transformer
import torch

from attnbook.model import block, transformer
from attnbook.model.bugs import ERRORS, patient
from attnbook.model.config import TINY, TransformerConfig
from attnbook.model.recording import recorded
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Pairs
from tests.helpers import translator as sound
from tests.helpers.parity import SMALL

# The tests that catch each error when the package itself has it.
CATCHES: dict[str, list[Callable[[], None]]] = {
    "A": [lambda: test_transformer.test_the_whole_model_is_pytorchs("pre", "relu")],
    "B": [lambda: test_transformer.TestEveryConfig().test_future_tokens_change_nothing(SMALL)],
    "C": [test_transformer.test_the_loss_counts_words_and_the_end_but_no_padding],
    "D": [
        lambda: test_transformer.TestEveryConfig().test_future_tokens_change_nothing(SMALL),
        lambda: (
            test_transformer.TestEveryConfig().test_weights_are_given_on_demand_and_change_nothing(
                SMALL
            )
        ),
    ],
    "E": [lambda: test_block.TestParity().test_encoder_block("pre", "relu")],
}


def break_package(patch: pytest.MonkeyPatch, letter: str) -> None:
    """Put the error where the sound class stands."""
    healthy, broken = ERRORS[letter]
    for module in (block, transformer, sound, test_transformer):
        if hasattr(module, healthy.__name__):
            patch.setattr(module, healthy.__name__, broken)


@pytest.mark.parametrize("letter", ERRORS)
def test_our_tests_catch_it(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for check in CATCHES[letter]:
        check()  # passes on the sound code
        with monkeypatch.context() as patch:
            break_package(patch, letter)
            with pytest.raises(AssertionError):
                check()


@pytest.mark.parametrize("letter", ERRORS)
def test_a_patient_has_the_same_weights_and_other_results(letter: str) -> None:
    ours = sound.model()
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    ill = patient(letter, ours)
    for name, value in ill.state_dict().items():
        assert torch.equal(value, before[name])
    batch = Pairs(sound.sources(), torch.tensor([[1, 5, 6, 2, 0], [1, 7, 3, 4, 2]]))
    assert abs(ill.loss(batch) - ours.loss(batch)) > 1e-4
    assert type(ours) is Transformer and ours.loss(batch) == sound_copy(ours).loss(batch)
    ill.loss(batch).backward()  # it learns, in its way
    assert all(p.grad is None for p in ours.parameters())


def sound_copy(ours: Transformer) -> Transformer:
    copy = sound.model()
    copy.load_state_dict(ours.state_dict())
    return copy


@pytest.mark.parametrize("letter", "BE")
def test_attention_is_ill_whatever_the_configuration(letter: str) -> None:
    """One step is replaced; grouped keys, norms and positions stay as they are."""
    config = sound.EVERY[-1]
    ours = sound.model(config)
    source, target = sound.sources(), sound.targets()
    with recorded(ours) as well:
        ours(source, target)
    with recorded(ill := patient(letter, ours)) as ailing:
        ill(source, target)
    path = "decoder.stack.blocks.0.attention"
    assert well[path].shape == ailing[path].shape
    assert (well[path] - ailing[path]).abs().max() > 1e-3


def test_only_cross_attention_takes_its_softmax_over_the_wrong_axis() -> None:
    ours, source, target = sound.model(), sound.sources(), sound.targets()
    with recorded(ill := patient("D", ours)) as weights:
        ill(source, target)
    for path, found in weights.items():
        words = found.sum(-1), found.sum(-2)
        columns = words[1][0]  # the first sentence has no padding
        if path.endswith("cross"):
            torch.testing.assert_close(columns, torch.ones_like(columns))
        else:
            torch.testing.assert_close(words[0], torch.ones_like(words[0]))


@pytest.mark.parametrize(
    ("letter", "config", "message"),
    [
        ("F", TINY, "letter must be one of 'A', 'B', 'C', 'D', 'E', got 'F'"),
        ("A", replace(TINY, positions="none"), "model must have a SinusoidalPositions"),
    ],
)
def test_what_cannot_be_broken(letter: str, config: TransformerConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patient(letter, sound.model(config))
