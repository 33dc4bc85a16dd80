"""Trained weights: the book's own, and those that others published, read into its models."""

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
