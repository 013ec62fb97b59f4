"""
Several annotators: majority, long format
=========================================

Each picture was labelled by three of six people. Train on their majority, or on all
answers, one in a row; then find out who labels well.
"""

# %%
# The answers
# -----------
# Digits 0 to 3. Three of the people are careful, two are hasty, and one takes most 3s
# for a 2. A table in long format has a row for each answer.
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from noisytransition import flip_labels
from noisytransition.transition import flip_noise, symmetric_noise

rng = np.random.default_rng(0)
X, y = load_digits(n_class=4, return_X_y=True)
X = X / 16
people = {
    "Ann": symmetric_noise(4, 0.1),
    "Ben": symmetric_noise(4, 0.15),
    "Eve": symmetric_noise(4, 0.15),
    "Joe": symmetric_noise(4, 0.6),
    "Kim": flip_noise({(3, 2): 0.8}, n_classes=4),
    "Pat": symmetric_noise(4, 0.5),
}
asked = [rng.choice(list(people), 3, replace=False) for _ in y]
answers = pd.DataFrame({"item": np.repeat(range(len(y)), 3), "who": np.ravel(asked)})
answers["label"] = 0
for who, rows in answers.groupby("who"):
    drawn = flip_labels(y[rows["item"]], people[who], random_state=rng)
    answers.loc[rows.index, "label"] = drawn
answers.head(6)

# %%
# Majority
# --------
# One label for each picture; ties are broken at random. A hundred pictures are checked.
from noisytransition import EMTransitionClassifier

votes = pd.crosstab(answers["item"], answers["label"]).to_numpy()
majority = (votes + rng.random(votes.shape)).argmax(axis=1)
verified = np.isin(np.arange(len(y)), rng.choice(len(y), 100, replace=False))
params = {"max_epochs": 10, "batch_size": 64, "random_state": 0}
by_majority = EMTransitionClassifier(**params)
by_majority.fit(X, majority, y_verified=np.where(verified, y, -1))
print(f"{np.mean(majority == y):.1%} of the majority labels are right")
print(f"T of the majority\n{by_majority.transition_matrix_.round(2)}")

# %%
# Long format
# -----------
# Every answer is a row, with the features of its picture. The answers to a checked
# picture are checked rows. T is then that of a single answer.
item = answers["item"].to_numpy()
checked = verified[item]
by_answer = EMTransitionClassifier(**params)
by_answer.fit(X[item], answers["label"], y_verified=np.where(verified, y, -1)[item])
print(f"T of an answer\n{by_answer.transition_matrix_.round(2)}")

# %%
# Who labels well?
# ----------------
# `em_transition_matrix` finds the T of each person from the classifier's posteriors.
# The true share of right labels is known here, since the data are made.
from noisytransition import em_transition_matrix

proba = by_answer.predict_proba(X)
found = {
    who: em_transition_matrix(proba[rows["item"]], rows["label"])
    for who, rows in answers.groupby("who")
}
share = np.bincount(y) / len(y)
table = pd.DataFrame(
    {
        "answers": answers["who"].value_counts(),
        "found": {who: share @ T.diagonal() for who, T in found.items()},
        "true": {who: share @ T.diagonal() for who, T in people.items()},
    }
)
table.sort_values("found", ascending=False).round(2)

# %%
import matplotlib.pyplot as plt

from noisytransition import TransitionMatrixDisplay

fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="compressed")
for ax, who in zip(axes, ["Ann", "Joe", "Kim"], strict=True):
    TransitionMatrixDisplay(found[who]).plot(ax=ax, colorbar=False)
    ax.set_title(who)

# %%
# All answers together
# --------------------
# By Bayes' rule the classifier and the T of each person give the probability of each
# true class, given the picture and all three answers.
log_posterior = np.log(proba + 1e-12)
for row in answers.itertuples():
    log_posterior[row.item] += np.log(found[row.who][:, row.label] + 1e-12)
open_rows = ~verified
for name, labels in {
    "majority": majority,
    "classifier, fitted to the majority": by_majority.predict(X),
    "classifier, fitted to all answers": by_answer.predict(X),
    "classifier and all answers": log_posterior.argmax(axis=1),
}.items():
    print(f"{np.mean((labels == y)[open_rows]):.1%} right: {name}")
