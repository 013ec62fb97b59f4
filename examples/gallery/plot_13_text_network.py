"""
Text: fine-tune a transformer, its head first
=============================================

Train a transformer on sentences with noisy labels: first its head, then all layers.
"""

# %%
# The sentences
# -------------
# Simulated reviews of one or two clauses. A single word is not informative, since "not"
# negates the word after it.
import numpy as np

rng = np.random.default_rng(0)
WORDS = {1: "good great lovely quick clean", -1: "bad awful rude slow dirty"}
THINGS = ["room", "food", "staff", "service", "place", "coffee", "breakfast"]


def clause(opinion):
    """Return a clause with a good (1) or bad (-1) opinion, with or without "not"."""
    negated = rng.random() < 0.4
    word = rng.choice(WORDS[-opinion if negated else opinion].split())
    thing, middle = rng.choice(THINGS), rng.choice(["", "really ", "so "])
    return f"the {thing} was {'not ' if negated else ''}{middle}{word}"


def review(label):
    """Return a review: one opinion in one or two clauses, or two opinions."""
    first = {"good": 1, "bad": -1}.get(label, rng.choice([1, -1]))
    if label == "mixed":
        return f"{clause(first)} but {clause(-first)}"
    return " and ".join(clause(first) for _ in range(rng.integers(1, 3)))


y = rng.choice(["bad", "good", "mixed"], 2600)
texts = np.array([review(label) for label in y])
for text, label in zip(texts[:3], y, strict=False):
    print(f"{label}: {text}")

# %%
# 1000 sentences have noisy labels, and 80 of them are verified. 1000 sentences have no
# label, and 600 are the test set. Their order is random.
import pandas as pd

from noisytransition import flip_labels

T = np.array([[0.6, 0.0, 0.4], [0.0, 0.6, 0.4], [0.1, 0.1, 0.8]])
labels = pd.DataFrame({"label": flip_labels(y[:1000], T, random_state=0)})
labels["verified"] = pd.Series(y[:80]).reindex(range(1000))
print(f"{np.mean(labels.label != y[:1000]):.0%} of the labels are wrong")

# %%
# The tokenizer
# -------------
# The tokenizer returns two arrays, named like the arguments of the network. Tokenizers
# of Hugging Face return the same: ``tokenizer(texts, padding=True)``.
VOCABULARY = {word: i for i, word in enumerate(sorted(set(" ".join(texts).split())), 2)}
PAD, MASK, N_WORDS = 0, 1, len(VOCABULARY) + 2
LENGTH = max(len(text.split()) for text in texts)


def tokenize(texts):
    """Convert words to numbers, padded to the longest sentence."""
    ids = np.full((len(texts), LENGTH), PAD)
    for row, text in zip(ids, texts, strict=True):
        words = [VOCABULARY[word] for word in text.split()]
        row[: len(words)] = words
    return {"input_ids": ids, "attention_mask": (ids != PAD).astype(int)}


X, X_unlabelled, X_test = (
    tokenize(part) for part in (texts[:1000], texts[1000:2000], texts[2000:])
)
print(X["input_ids"][:2])

# %%
# The network
# -----------
# The body is a small transformer, pretrained on all sentences without labels to predict
# masked words. Use a pretrained model of ``transformers`` instead.
import torch
from torch import nn

torch.manual_seed(0)


class Body(nn.Module):
    """Transformer with two layers, which returns a vector for each word."""

    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(N_WORDS, width)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, input_ids, attention_mask):
        """Return an array of shape (sentences, words, width)."""
        x = self.words(input_ids) + self.places
        return self.layers(x, src_key_padding_mask=attention_mask == 0)


body, guess = Body(), nn.Linear(32, N_WORDS)
optimizer = torch.optim.Adam([*body.parameters(), *guess.parameters()], lr=2e-3)
sentences = {k: torch.tensor(np.vstack([X[k], X_unlabelled[k]])) for k in X}
for _ in range(EPOCHS := 25):
    for rows in torch.randperm(2000).split(64):
        ids, mask = (part[rows] for part in sentences.values())
        hidden = (torch.rand(ids.shape) < 0.2) & (mask == 1)
        logits = guess(body(ids.masked_fill(hidden, MASK), mask))
        loss = nn.functional.cross_entropy(logits[hidden], ids[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.2f}, by chance {np.log(N_WORDS):.2f}")


class Classifier(nn.Module):
    """The body, and a linear head on the mean of the word vectors."""

    def __init__(self, body):
        super().__init__()
        self.body, self.head = body, nn.Linear(32, 3)

    def forward(self, input_ids, attention_mask):
        """Return logits."""
        x, weight = self.body(input_ids, attention_mask), attention_mask[..., None]
        return self.head((x * weight).sum(1) / weight.sum(1))


# %%
# First the head, then all layers
# -------------------------------
# skorch's callbacks freeze the body, and unfreeze it in the sixth epoch of each
# training. The body has a smaller learning rate than the head. For comparison, the body
# is also frozen in all epochs.
import copy

from skorch.callbacks import Freezer, Unfreezer

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
)

training = {
    "module": Classifier(body),
    "lr": 0.01,
    "optimizer__param_groups": [("body.*", {"lr": 1e-3})],
    "max_epochs": 15,
    "batch_size": 64,
    "random_state": 0,
}
callbacks = {
    "body frozen": [Freezer("body.*")],
    "head first, then all": [Freezer("body.*"), Unfreezer("body.*", at=6)],
}
methods = {
    "ignoring the noise": CrossEntropyClassifier,
    "fine-tuning": FineTuningClassifier,
    "EM": EMTransitionClassifier,
}
accuracy = pd.DataFrame(index=list(methods), columns=list(callbacks), dtype=float)
for name, method in methods.items():
    for how, given in callbacks.items():
        clf = method(**training, callbacks=copy.deepcopy(given))
        clf.fit(X, labels)
        accuracy.loc[name, how] = clf.score(X_test, y[2000:])
accuracy.round(2)

# %%
# Single words are not enough, so all layers must be trained. They then memorise the
# noise, unless the method models it. These are results of one seed.
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for how, marker in zip(callbacks, "os", strict=True):
    ax.plot(accuracy[how], accuracy.index, marker, markersize=9, label=how)
ax.axvline(1 / 3, color="grey", linewidth=0.8, linestyle="--", label="by chance")
ax.set(xlabel="accuracy on 600 test sentences", xlim=(0.3, 1))
ax.invert_yaxis()
ax.legend(loc="upper center", bbox_to_anchor=(0.4, 1.25), ncols=3, frameon=False)

# %%
# T, and labels to inspect
# ------------------------
# The last fit is EM. The true T has "bad -> mixed 0.40", "good -> mixed 0.40", and 0.10
# for each flip of "mixed".
print(clf.transition_summary())

# %%
# Out-of-fold probabilities judge the labels: no network was trained on the sentence.
issues = clf.find_label_issues().head(8)
issues["sentence"] = texts[issues.position]
issues["true"] = y[issues.position]
issues.drop(columns="position")
