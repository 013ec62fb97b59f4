"""
Texts: your own network
=======================

Train a network on sentences with noisy labels, where single words are not informative.
"""

# %%
# The sentences
# -------------
# Reviews of a hotel, put together from clauses. "not" negates the word after it. A
# review of a good and a bad clause is mixed.
import numpy as np

WORDS = {
    "good": "good great lovely quick clean fresh quiet warm friendly bright tidy cosy",
    "bad": "bad awful rude slow dirty stale noisy cold hostile gloomy messy ugly",
}
THINGS = ["room", "food", "staff", "service", "place", "coffee", "breakfast"]
OTHER = {"good": "bad", "bad": "good"}
rng = np.random.default_rng(0)


def clause(opinion):
    """Return a clause, with or without "not"."""
    negated = rng.random() < 0.4
    word = rng.choice(WORDS[OTHER[opinion] if negated else opinion].split())
    return f"the {rng.choice(THINGS)} was {'not ' if negated else ''}{word}"


y = rng.choice(["bad", "good", "mixed"], 1400)
texts = []
for label in y:
    opinions = [label, label] if label in OTHER else rng.permutation(["bad", "good"])
    texts.append(" and ".join(clause(opinion) for opinion in opinions))
print(*texts[:3], sep="\n")

# %%
# Words are converted to numbers, as by a tokenizer of Hugging Face.
vocabulary = {word: i for i, word in enumerate(sorted(set(" ".join(texts).split())), 1)}
X = np.zeros((1400, 11), dtype=int)  # 0: after the last word
for row, text in enumerate(texts):
    numbers = [vocabulary[word] for word in text.split()]
    X[row, : len(numbers)] = numbers

# %%
# 1000 sentences have noisy labels, 60 of them are verified, and 400 are the test set.
# 40 % of the good and bad reviews are labelled mixed.
from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, flip_labels

T = [[0.6, 0.0, 0.4], [0.0, 0.6, 0.4], [0.1, 0.1, 0.8]]
y_noisy = flip_labels(y[:1000], T, random_state=0)
verified = np.where(np.arange(1000) < 60, y[:1000], None)

# %%
# The network
# -----------
# A convolution over three neighbouring words. Use any torch module that returns logits.
from torch import nn


class Net(nn.Module):
    """Convolution of word vectors, maximum over words, linear layer."""

    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(len(vocabulary) + 1, width)
        self.convolution = nn.Conv1d(width, width, 3, padding=1)
        self.linear = nn.Linear(width, 3)

    def forward(self, x):
        """Logits of shape (n_sentences, 3)."""
        x = self.convolution(self.words(x).transpose(1, 2)).relu()
        return self.linear(x.amax(dim=2))


clf = EMTransitionClassifier(Net, lr=0.01, max_epochs=10, random_state=0)
clf.fit(X[:1000], y_noisy, y_verified=verified)
ignoring = CrossEntropyClassifier(Net, lr=0.01, max_epochs=10, random_state=0)
ignoring.fit(X[:1000], y_noisy)
verified_only = CrossEntropyClassifier(Net, lr=0.01, max_epochs=100, random_state=0)
verified_only.fit(X[:60], y[:60])
print(f"test accuracy: {clf.score(X[1000:], y[1000:]):.3f}")
print(f"ignoring the noise: {ignoring.score(X[1000:], y[1000:]):.3f}")
print(f"verified labels only: {verified_only.score(X[1000:], y[1000:]):.3f}")
print(clf.transition_summary())

# %%
# The probability of each class, for some sentences of the test set:
import matplotlib.pyplot as plt

shown = texts[1000:1008]
proba = clf.predict_proba(X[1000:1008])
fig, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
left = np.zeros(8)
for k, colour in enumerate(["indianred", "seagreen", "gold"]):
    ax.barh(shown, proba[:, k], left=left, color=colour, label=clf.classes_[k])
    left += proba[:, k]
ax.set(xlabel="probability", xlim=(0, 1))
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
