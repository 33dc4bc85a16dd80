"""The planted errors of chapter 6: each runs, and each is caught by a test of the sound code."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import test_transformer as sound
import torch

from attnbook import transformer
from attnbook.gallery import ERRORS, _StepByStep, patient
from attnbook.transformer import MODERN, TINY, Transformer

# The tests that catch each error when the package itself has it.
CATCHES: dict[str, list[Callable[[], None]]] = {
    "A": [lambda: sound.TestParity().test_whole_model("pre", "relu")],
    "B": [lambda: sound.TestEveryConfig().test_future_tokens_change_nothing(sound.SMALL)],
    "C": [sound.test_the_loss_counts_words_and_the_end_but_no_padding],
    "D": [
        lambda: sound.TestEveryConfig().test_future_tokens_change_nothing(sound.SMALL),
        lambda: sound.TestEveryConfig().test_weights_are_given_on_demand_and_change_nothing(
            sound.SMALL
        ),
    ],
    "E": [lambda: sound.TestParity().test_encoder_block("pre", "relu")],
}
WHOLE = [
    lambda: sound.TestParity().test_encoder_block("pre", "relu"),
    lambda: sound.TestParity().test_decoder_block("pre", "relu"),
    lambda: sound.TestParity().test_whole_model("pre", "relu"),
]


def break_package(patch: pytest.MonkeyPatch, letter: str) -> None:
    """Put the error where the sound class stands."""
    healthy, broken = ERRORS[letter]
    for module in (transformer, sound):
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


def test_attention_in_steps_is_sound_but_for_the_step_that_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transformer, "MultiHeadAttention", _StepByStep)
    for check in WHOLE:
        check()


@pytest.mark.parametrize("letter", ERRORS)
def test_a_patient_has_the_same_weights_and_other_results(letter: str) -> None:
    ours = sound.model()
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    ill = patient(letter, ours)
    for name, value in ill.state_dict().items():
        assert torch.equal(value, before[name])
    batch = sound.Batch(sound.sources(), torch.tensor([[1, 5, 6, 2, 0], [1, 7, 3, 4, 2]]))
    assert abs(ill.loss(batch) - ours.loss(batch)) > 1e-4
    assert type(ours) is Transformer and ours.loss(batch) == sound_copy(ours).loss(batch)
    ill.loss(batch).backward()  # it learns, in its way
    assert all(p.grad is None for p in ours.parameters())


def sound_copy(ours: Transformer) -> Transformer:
    copy = sound.model()
    copy.load_state_dict(ours.state_dict())
    return copy


@pytest.mark.parametrize(
    ("letter", "config", "message"),
    [
        ("F", TINY, "letter must be one of A, B, C, D, E, got 'F'"),
        ("A", replace(TINY, positions="none"), "model must have a SinusoidalPositions"),
        ("E", MODERN, "model must have a MultiHeadAttention, and heads as in TINY"),
    ],
)
def test_what_cannot_be_broken(
    letter: str, config: transformer.TransformerConfig, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        patient(letter, Transformer(5, 6, config))
