r"""Hidden states of pretrained language encoders on labelled text (Cha et al. Fig. 11).

Needs the optional dependencies ``pip install "agop[language]"`` (transformers and
datasets) and downloads weights and texts on first use. Sentence tasks (SST-2, MNLI)
are read from the state at the first token, word tasks (part of speech, named entities)
from the state at the first piece of each word.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from agop._validation import check_integer

IGNORED = -100  # label of positions without one; torch's cross-entropy skips it


class LanguageTask(NamedTuple):
    """Where a task's texts are, and what to read from them."""

    source: tuple[str, ...]  # arguments of datasets.load_dataset
    revision: str | None
    text: tuple[str, ...]  # columns: one, or two sentences of a pair
    label: str
    labels: int
    words: bool  # one label a word


LANGUAGE_TASKS = {
    "sst2": LanguageTask(("glue", "sst2"), None, ("sentence",), "label", 2, False),
    "mnli": LanguageTask(
        ("glue", "mnli"), None, ("premise", "hypothesis"), "label", 3, False
    ),
    "pos": LanguageTask(
        ("eriktks/conll2003",), "convert/parquet", ("tokens",), "pos_tags", 47, True
    ),
    "ner": LanguageTask(
        ("eriktks/conll2003",), "convert/parquet", ("tokens",), "ner_tags", 9, True
    ),
}


class Texts(NamedTuple):
    """Encoded texts: the tokenizer's arrays, and a label at each position."""

    inputs: dict[str, Tensor]  # (n, T) each
    labels: Tensor  # (n, T), IGNORED where there is none


def load_texts(
    task: str,
    n: int,
    *,
    model: str = "bert-base-uncased",
    split: str = "train",
    length: int = 128,
    seed: int = 0,
) -> Texts:
    """Draw ``n`` texts of a task and encode them.

    Parameters
    ----------
    task : {"sst2", "mnli", "pos", "ner"}
    n : int
    model : str
        Whose tokenizer to use.
    split : str
        Part of the data set, by its own name.
    length : int, default=128
        T; longer texts are cut, shorter ones padded.
    seed : int, default=0
        Of the draw.

    Raises
    ------
    ValueError
        If the task is unknown.
    ImportError
        If transformers or datasets is not installed.
    """
    chosen = _task(task)
    rows = _need("datasets").load_dataset(*chosen.source, revision=chosen.revision)
    rows = rows[split]
    order = np.random.default_rng(seed).permutation(len(rows))
    rows = rows.select(np.sort(order[: check_integer(n, "n")]).tolist())
    tokenizer = _need("transformers").AutoTokenizer.from_pretrained(model)
    encoded = tokenizer(
        *(list(rows[column]) for column in chosen.text),
        is_split_into_words=chosen.words,
        truncation=True,
        padding="max_length",
        max_length=check_integer(length, "length"),
        return_tensors="pt",
    )
    labels = torch.full(encoded["input_ids"].shape, IGNORED)
    for i, label in enumerate(rows[chosen.label]):
        if chosen.words:
            labels[i] = first_pieces(encoded.word_ids(i), label)
        else:
            labels[i, 0] = label
    return Texts({key: encoded[key] for key in tokenizer.model_input_names}, labels)


def first_pieces(words: list[int | None], labels: list[int]) -> Tensor:
    """Return the label of each word at its first piece, and none elsewhere, (T,).

    Parameters
    ----------
    words : list of int or None
        The word that each piece belongs to; None for padding and the like.
    labels : list of int
        One a word.

    Examples
    --------
    >>> first_pieces([None, 0, 1, 1, None], [7, 8]).tolist()
    [-100, 7, 8, -100, -100]
    """
    before = [None, *words[:-1]]
    return torch.tensor(
        [
            IGNORED if word is None or word == last else labels[word]
            for word, last in zip(words, before, strict=True)
        ]
    )


def load_encoder(
    task: str, *, model: str = "bert-base-uncased", pretrained: bool = True
) -> nn.Module:
    """Return the encoder with a fresh head for every position, pretrained or random.

    Random weights come from the global generator of torch: seed it before.
    """
    transformers, labels = _need("transformers"), _task(task).labels
    head = transformers.AutoModelForTokenClassification
    if pretrained:
        found: nn.Module = head.from_pretrained(model, num_labels=labels)
        return found
    config = transformers.AutoConfig.from_pretrained(model, num_labels=labels)
    found = head.from_config(config)
    return found


def fine_tune(
    encoder: nn.Module,
    texts: Texts,
    *,
    lr: float = 2e-5,
    weight_decay: float = 0.01,
    batch_size: int = 32,
    epochs: int = 3,
    seed: int = 0,
) -> list[float]:
    """Train encoder and head by AdamW in place; return the mean loss of each epoch.

    The learning rate rises over the first tenth of the steps and then falls linearly to
    zero, as in the released settings.
    """
    device = next(encoder.parameters()).device
    adam = torch.optim.AdamW(encoder.parameters(), lr=lr, weight_decay=weight_decay)
    n, generator = len(texts.labels), torch.Generator().manual_seed(seed)
    total = epochs * -(-n // batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda t: min((t + 1) / max(1, total // 10), 1 - t / total)
    )
    encoder.train()
    losses = []
    for _ in range(epochs):
        mean = 0.0
        for rows in torch.randperm(n, generator=generator).split(batch_size):
            inputs = {key: v[rows].to(device) for key, v in texts.inputs.items()}
            scores = encoder(**inputs).logits  # (b, T, C)
            loss = nn.functional.cross_entropy(
                scores.flatten(0, 1),
                texts.labels[rows].to(device).flatten(),
                ignore_index=IGNORED,
            )
            adam.zero_grad()
            loss.backward()
            adam.step()
            schedule.step()
            mean += float(loss.detach()) * len(rows) / n
        losses.append(mean)
    return losses


@torch.no_grad()
def layer_states(
    encoder: nn.Module, texts: Texts, *, batch_size: int = 64
) -> tuple[list[Tensor], Tensor]:
    """Return the states of every layer where there is a label, and the labels.

    Returns
    -------
    states : list of tensors of shape (m, k), embedding first
    labels : tensor of shape (m,)
    """
    device = next(encoder.parameters()).device
    encoder.eval()
    parts = []
    for rows in torch.arange(len(texts.labels)).split(batch_size):
        inputs = {key: v[rows].to(device) for key, v in texts.inputs.items()}
        found = encoder(**inputs, output_hidden_states=True).hidden_states
        mask = texts.labels[rows] != IGNORED  # (b, T)
        parts.append([h.cpu()[mask] for h in found])
    states = [torch.cat(layer) for layer in zip(*parts, strict=True)]
    return states, texts.labels[texts.labels != IGNORED]


def _task(name: str) -> LanguageTask:
    if name not in LANGUAGE_TASKS:
        raise ValueError(f"task must be one of {sorted(LANGUAGE_TASKS)}, got {name!r}")
    return LANGUAGE_TASKS[name]


def _need(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f'{package} is needed for language tasks: pip install "agop[language]"'
        ) from error
