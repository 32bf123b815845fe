"""The loading code on stand-ins: no weights or texts are downloaded."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from agop.language import (
    IGNORED,
    Texts,
    fine_tune,
    first_pieces,
    layer_states,
    load_encoder,
    load_texts,
)
from agop.target_linearity import layer_target_linearity


class Rows(dict):
    """A table with the part of the interface of `datasets` that is used."""

    def __len__(self):
        return len(next(iter(self.values())))

    def select(self, rows):
        return Rows({key: [v[i] for i in rows] for key, v in self.items()})


class Encoded(dict):
    def word_ids(self, i):
        return self["words"][i]


class Tokenizer:
    """Splits each word of a letters in a pieces, between two marks."""

    model_input_names = ("input_ids", "attention_mask")

    def __call__(self, *texts, is_split_into_words, max_length, **options):
        assert options == {
            "truncation": True,
            "padding": "max_length",
            "return_tensors": "pt",
        }
        ids, words = [], []
        for row in zip(*texts, strict=True):
            pieces = row[0] if is_split_into_words else " ".join(row).split()
            owner = [i for i, word in enumerate(pieces) for _ in word]
            owner = [None, *owner, None][:max_length]
            owner += [None] * (max_length - len(owner))
            words.append(owner)
            ids.append([0 if w is None else len(pieces[w]) for w in owner])
        ids = torch.tensor(ids)
        return Encoded(input_ids=ids, attention_mask=(ids > 0).long(), words=words)


class TinyEncoder(nn.Module):
    """Embedding, one mixing layer and a head, with the outputs of transformers."""

    def __init__(self, labels=3, pretrained=False):
        super().__init__()
        torch.manual_seed(int(pretrained))
        self.labels, self.pretrained = labels, pretrained
        self.embedding = nn.Embedding(20, 8)
        self.mix, self.head = nn.Linear(8, 8), nn.Linear(8, labels)

    def forward(self, input_ids, attention_mask, output_hidden_states=False):
        first = self.embedding(input_ids)
        last = torch.tanh(self.mix(first))
        return SimpleNamespace(logits=self.head(last), hidden_states=(first, last))


@pytest.fixture
def packages(monkeypatch):
    """Put stand-ins for both optional packages in place."""
    seen = {}
    texts = {
        "glue": Rows(sentence=["a bb", "ccc d e", "f"], label=[0, 1, 1]),
        "eriktks/conll2003": Rows(
            tokens=[["a", "bb"], ["ccc"], ["d", "e"]], pos_tags=[[5, 6], [7], [8, 9]]
        ),
    }

    def load_dataset(*source, revision):
        seen["source"] = (*source, revision)
        return {"train": texts[source[0]]}

    datasets, transformers = ModuleType("datasets"), ModuleType("transformers")
    datasets.load_dataset = load_dataset
    transformers.AutoTokenizer = SimpleNamespace(
        from_pretrained=lambda model: Tokenizer()
    )
    transformers.AutoConfig = SimpleNamespace(
        from_pretrained=lambda model, num_labels: num_labels
    )
    transformers.AutoModelForTokenClassification = SimpleNamespace(
        from_pretrained=lambda model, num_labels: TinyEncoder(num_labels, True),
        from_config=TinyEncoder,
    )
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    return seen


def test_sentences_carry_their_label_at_the_first_token(packages):
    texts = load_texts("sst2", 3, length=6)
    assert packages["source"] == ("glue", "sst2", None)
    assert texts.labels[:, 0].tolist() == [0, 1, 1]
    assert (texts.labels[:, 1:] == IGNORED).all()
    assert texts.inputs["input_ids"][0].tolist() == [0, 1, 2, 2, 0, 0]
    assert set(texts.inputs) == {"input_ids", "attention_mask"}


def test_words_carry_theirs_at_the_first_piece(packages):
    texts = load_texts("pos", 3, length=5)
    assert packages["source"] == ("eriktks/conll2003", "convert/parquet")
    none = IGNORED
    assert texts.labels.tolist() == [
        [none, 5, 6, none, none],
        [none, 7, none, none, none],
        [none, 8, 9, none, none],
    ]
    fewer = load_texts("pos", 2, length=5, seed=1)
    assert len(fewer.labels) == 2


def test_encoders_are_pretrained_or_random(packages):
    assert load_encoder("ner").pretrained
    fresh = load_encoder("ner", pretrained=False)
    assert not fresh.pretrained
    assert fresh.labels == 9


def drawn(n=64, T=6):
    ids = torch.as_tensor(np.random.default_rng(0).integers(0, 20, (n, T)))
    labels = torch.full((n, T), IGNORED)
    labels[:, 2] = ids[:, 2] % 3
    return Texts({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, labels)


def test_states_are_those_at_labelled_positions():
    texts, encoder = drawn(), TinyEncoder()
    states, labels = layer_states(encoder, texts, batch_size=10)
    ids = texts.inputs["input_ids"][:, 2]
    assert labels.tolist() == (ids % 3).tolist()
    torch.testing.assert_close(states[0], encoder.embedding(ids))
    torch.testing.assert_close(states[1], torch.tanh(encoder.mix(states[0])))


def test_fine_tuning_fits_the_labels_and_raises_target_linearity():
    texts, encoder = drawn(), TinyEncoder()

    def last():
        states, labels = layer_states(encoder, texts)
        return layer_target_linearity(states, torch.eye(3)[labels])[-1]

    before = last()
    losses = fine_tune(encoder, texts, lr=0.02, epochs=15, batch_size=16)
    assert losses[-1] < 0.5 * losses[0]
    assert last() > before + 0.1


def test_bad_input_is_named(packages, monkeypatch):
    with pytest.raises(ValueError, match="task must be one of"):
        load_texts("cola", 3)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"agop\[language\]"):
        load_texts("sst2", 3)
    assert first_pieces([0, 0, 1], [3, 4]).tolist() == [3, IGNORED, 4]
