"""Trained weights, the book's own and published ones, loaded into the book's models."""

from attnbook.weights.pretrained import (
    SOTU_GPT,
    chat,
    copy_bert_attention,
    load_bert,
    load_gpt2,
    load_smollm2,
    minilm,
    sotu_bert,
    sotu_gpt,
)

__all__ = [
    "SOTU_GPT",
    "chat",
    "copy_bert_attention",
    "load_bert",
    "load_gpt2",
    "load_smollm2",
    "minilm",
    "sotu_bert",
    "sotu_gpt",
]
