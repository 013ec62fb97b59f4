"""
Find wrong labels in texts
==========================

Rank support tickets by the probability that their label is correct, read some of them,
and replace labels that are probably wrong.
"""

# %%
# The tickets
# -----------
# 800 support tickets, put together from sentences. The last sentence decides the topic;
# half of the tickets also have a sentence on any topic before it.
import numpy as np

THINGS = ["lamp", "kettle", "headset", "backpack", "keyboard", "jacket"]
SENTENCES = {
    "billing": [
        "I was charged twice for the {}.",
        "The invoice for the {} shows the wrong amount.",
        "When do I get my money back for the {}?",
    ],
    "defect": [
        "The {} broke after two days.",
        "My new {} smells of burnt plastic.",
        "A part of the {} is missing.",
    ],
    "delivery": [
        "The {} has still not arrived.",
        "The courier left the {} at the wrong house.",
        "Can you send the {} to my new address?",
    ],
}
rng = np.random.default_rng(0)
y = rng.choice(list(SENTENCES), 800)
texts = []
for topic in y:
    text = rng.choice(SENTENCES[topic]).format(rng.choice(THINGS))
    if rng.random() < 0.5:
        other = SENTENCES[rng.choice(list(SENTENCES))]
        text = f"{rng.choice(other).format(rng.choice(THINGS))} {text}"
    texts.append(text)
texts = np.array(texts)

# %%
# Customers chose the label. They filed 45 % of the defects under delivery, and 30 % of
# the questions on bills under defect. We verified the first 80 tickets.
import pandas as pd

from noisytransition import flip_labels

T = [[0.7, 0.3, 0.0], [0.0, 0.55, 0.45], [0.05, 0.05, 0.9]]
labels = pd.DataFrame({"label": flip_labels(y, T, random_state=0)})
labels["verified"] = pd.Series(y[:80])

# %%
# The fit
# -------
# `TransitionClassifierCV` takes any scikit-learn classifier, here a Pipeline of texts.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from noisytransition import TransitionClassifierCV

pipe = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10))
clf = TransitionClassifierCV(pipe, random_state=0).fit(texts, labels)
print(clf.transition_summary())

# %%
# Wrong labels
# ------------
# The figure shows every 33rd label that is probably wrong, with the probability that it
# is wrong.
import textwrap

import matplotlib.pyplot as plt

issues = clf.find_label_issues()
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for line, issue in enumerate(issues[::33].itertuples()):
    ax.text(0, -line, f"{1 - issue.label_quality:.0%}", color="tab:red", size=13)
    ax.text(0.13, -line, f"{issue.given_label} → {issue.suggested_label}", size=11)
    ax.text(0.42, -line, textwrap.fill(texts[issue.position], 50), va="center")
ax.set(ylim=(-line - 0.5, 0.5))
ax.axis("off")

# %%
# Correct labels
# --------------
# `relabel` replaces a label if another class has a posterior of at least ``threshold``.
# The simple way predicts the labels of unverified tickets by the same Pipeline, trained
# on the verified tickets.
true = y[issues.position]
print(f"{np.mean(issues.given_label != true):.0%} of {len(issues)} listed are wrong")
print(f"given labels: {np.mean((labels.label == y)[80:]):.1%} correct")
print(f"relabelled: {np.mean((clf.relabel(threshold=0.9) == y)[80:]):.1%} correct")
verified_only = pipe.fit(texts[:80], y[:80]).predict(texts[80:])
print(f"predicted from 80 verified: {np.mean(verified_only == y[80:]):.1%} correct")
