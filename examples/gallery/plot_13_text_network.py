"""
Text: a transformer, its body frozen first
==========================================

A network with two inputs, as tokenizers give them, learns from sentences with wrong
labels: its head first, then all of it.
"""

# %%
# The sentences
# -------------
# Made data: reviews of one clause or two. A word alone says little, since "not" turns
# the one after it.
import numpy as np

rng = np.random.default_rng(0)
WORDS = {1: "good great lovely quick clean", -1: "bad awful rude slow dirty"}
THINGS = ["room", "food", "staff", "service", "place", "coffee", "breakfast"]


def clause(opinion):
    """Say something good (1) or bad (-1), with "not" or without."""
    negated = rng.random() < 0.4
    word = rng.choice(WORDS[-opinion if negated else opinion].split())
    thing, middle = rng.choice(THINGS), rng.choice(["", "really ", "so "])
    return f"the {thing} was {'not ' if negated else ''}{middle}{word}"


def review(label):
    """One opinion in one clause or two, or two opinions."""
    first = {"good": 1, "bad": -1}.get(label, rng.choice([1, -1]))
    if label == "mixed":
        return f"{clause(first)} but {clause(-first)}"
    return " and ".join(clause(first) for _ in range(rng.integers(1, 3)))


y = rng.choice(["bad", "good", "mixed"], 2600)
texts = np.array([review(label) for label in y])
for text, label in zip(texts[:3], y, strict=False):
    print(f"{label}: {text}")

# %%
# Of 1000 sentences the labels are known, with many wrong ones. 80 of them, drawn at
# random, were checked. 600 are for the test, and 1000 have no label.
import pandas as pd

from noisytransition import flip_labels

T = np.array([[0.6, 0.0, 0.4], [0.0, 0.6, 0.4], [0.1, 0.1, 0.8]])
labels = pd.DataFrame({"label": flip_labels(y[:1000], T, random_state=0)})
labels["verified"] = pd.Series(y[:80]).reindex(range(1000))
print(f"{np.mean(labels.label != y[:1000]):.0%} of the labels are wrong")

# %%
# The tokenizer
# -------------
# It gives two arrays of the same length, by the names of the network's arguments. One
# of Hugging Face's does the same: ``tokenizer(texts, padding=True)``.
VOCABULARY = {word: i for i, word in enumerate(sorted(set(" ".join(texts).split())), 2)}
PAD, MASK, N_WORDS = 0, 1, len(VOCABULARY) + 2
LENGTH = max(len(text.split()) for text in texts)


def tokenize(texts):
    """Make numbers of words, filled up to the longest sentence."""
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
# A small transformer is the body. It learns from sentences without labels to guess
# words that are hidden; a pretrained model of ``transformers`` would stand here.
import torch
from torch import nn

torch.manual_seed(0)


class Body(nn.Module):
    """A vector for each word of a sentence, by two layers of attention."""

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
    """The body and a head: a linear layer of the mean of the words' vectors."""

    def __init__(self, body):
        super().__init__()
        self.body, self.head = body, nn.Linear(32, 3)

    def forward(self, input_ids, attention_mask):
        """Return logits."""
        x, weight = self.body(input_ids, attention_mask), attention_mask[..., None]
        return self.head((x * weight).sum(1) / weight.sum(1))


# %%
# The head first, then all of it
# ------------------------------
# skorch's callbacks freeze the body, and thaw it in the sixth epoch of each training.
# The body moves in smaller steps than the head. With the body frozen to the end, only
# the head learns.
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
# A sentence needs more than its words one by one, so that all of the network must
# learn. Then it learns the noise too, unless a method allows for it. This is one seed.
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for how, marker in zip(callbacks, "os", strict=True):
    ax.plot(accuracy[how], accuracy.index, marker, markersize=9, label=how)
ax.axvline(1 / 3, color="grey", linewidth=0.8, linestyle="--", label="by chance")
ax.set(xlabel="accuracy on 600 sentences with true labels", xlim=(0.3, 1))
ax.invert_yaxis()
ax.legend(loc="upper center", bbox_to_anchor=(0.4, 1.25), ncols=3, frameon=False)

# %%
# T, and labels to check
# ----------------------
# The last fit is that of EM. The true T has "bad -> mixed 0.40", "good -> mixed 0.40"
# and 0.10 for each of the ways from "mixed".
print(clf.transition_summary())

# %%
# ``oof_proba_`` has the posteriors of networks that were not trained on a sentence.
issues = clf.noise_model_.find_label_issues(clf.oof_proba_, labels, calibrate=False)
issues = issues.head(8)
issues["sentence"] = texts[issues.position]
issues["true"] = y[issues.position]
issues.drop(columns="position")
