"""
Labels of a language model, with a confidence
=============================================

A language model labels reviews and states its confidence. Check the confidence by a few
verified labels, and estimate one T for each level of confidence.
"""

# %%
# The reviews
# -----------
# 1200 product reviews, put together from sentences. A review with a good and a bad
# sentence is neutral.
import numpy as np

THINGS = ["lamp", "kettle", "headset", "backpack", "keyboard", "jacket", "blender"]
GOOD = """The {} works perfectly. | I would buy the {} again. | My family loves the {}.
The {} feels solid. | It was easy to set up the {}. | The {} is worth every cent.
The {} looks even better than in the photo. | I use the {} every day."""
BAD = """The {} broke after two days. | I sent back the {}. | The {} is a waste.
My new {} smells of burnt plastic. | The {} never worked. | The {} looks cheap.
I cannot recommend the {} to anyone. | The {} arrived with a deep scratch."""
GOOD, BAD = (text.replace("\n", " | ").split(" | ") for text in (GOOD, BAD))
PARTS = {"negative": [BAD, BAD], "neutral": [GOOD, BAD], "positive": [GOOD, GOOD]}
rng = np.random.default_rng(0)
y = rng.choice(list(PARTS), 1200)
texts = []
for opinion in y:
    sentences = [rng.choice(PARTS[opinion][k]) for k in rng.permutation(2)]
    texts.append(" ".join(sentences).format(*rng.choice(THINGS, 2)))
print(*texts[:3], sep="\n")

# %%
# The labels
# ----------
# The answers of the model are simulated. Many neutral reviews are labelled positive,
# more often if the confidence is low.
import pandas as pd

confidence = rng.choice([0.7, 0.8, 0.9, 1.0], 1200)
error = rng.random(1200) < 2.2 * (1.05 - confidence)
label = np.where(error & (y == "neutral"), "positive", y)
label = np.where(rng.random(1200) < 0.1, rng.choice(list(PARTS), 1200), label)
print(pd.crosstab(y, label))

# %%
# The fit
# -------
# The first 80 reviews are verified. ``sources`` has the level of confidence of each
# label, and each level gets a T.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from noisytransition import TransitionClassifierCV

verified = pd.Series(y).where(np.arange(1200) < 80)
level = pd.Series(confidence).astype(str)
pipe = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10))
clf = TransitionClassifierCV(pipe, random_state=0)
clf.fit(texts, label, y_verified=verified, sources=level)
summary = clf.source_summary()
print(summary[["n_labels", "right", "lower", "upper", "worst_flip", "flip"]].round(2))

# %%
# Below the dashed line, the language model is overconfident. The bars are 90 %
# intervals.
import matplotlib.pyplot as plt

said = summary.index.astype(float)
bars = [summary.right - summary.lower, summary.upper - summary.right]
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.fill_between([0.6, 1], [0.6, 1], [0.6, 0.6], color="mistyrose")
ax.plot([0.6, 1], [0.6, 1], color="grey", linestyle="--")
ax.errorbar(said, summary.right, bars, fmt="o-", capsize=4, color="tab:red")
ax.set(xlabel="confidence of the language model", ylabel="correct labels")

# %%
# Comparison
# ----------
# Each label is replaced by the most probable class. The simple ways predict it by the
# same Pipeline, trained on all labels as they are, or on the verified ones.
from sklearn.model_selection import cross_val_predict

results = {
    "labels of the language model": label,
    "classifier, ignoring the noise": cross_val_predict(pipe, texts, label),
    "classifier, 80 verified only": pipe.fit(texts[:80], y[:80]).predict(texts),
    "with a T for each level": clf.classes_[clf.label_posterior().argmax(axis=1)],
}
for name, found in results.items():
    print(f"{np.mean((found == y)[80:]):.1%} correct: {name}")
