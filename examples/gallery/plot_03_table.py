"""
A table: preprocessing, Pipeline, search
========================================

Preprocess numbers and categories with a ColumnTransformer, and select parameters by a
grid search that scores on verified samples.
"""

# %%
# The table
# ---------
# Simulated customers of a telephone company, with the reason why they left. If the
# reason was bad service, the agent wrote "price" in half of the cases.
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 900
table = pd.DataFrame(
    {
        "bill": rng.gamma(4, 12, n).round(2),
        "calls": rng.poisson(2, n),
        "contract": rng.choice(["month", "year"], n),
        "area": rng.choice(["city", "country", "suburb"], n),
    }
)
scores = np.column_stack(
    [
        2 * (table["contract"] == "month"),
        0.07 * table["bill"] - 2,
        1.2 * table["calls"] - 2 + (table["area"] == "country"),
    ]
)
names = np.array(["moved", "price", "service"])
truth = names[(1.5 * scores + rng.gumbel(size=(n, 3))).argmax(axis=1)]
written = np.where((truth == "service") & (rng.random(n) < 0.5), "price", truth)
table.assign(written=written).head()

# %%
# Verified labels
# ---------------
# 150 customers were called back. The samples after 700 are the test set.
X, labels = table[:700], pd.DataFrame({"written": written[:700]})
labels.loc[:149, "verified"] = truth[:150]
pd.crosstab(labels["verified"], labels["written"])

# %%
# The Pipeline
# ------------
from sklearn.compose import make_column_transformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from noisytransition import EMTransitionClassifier, VerifiedKFold

columns = make_column_transformer(
    (StandardScaler(), ["bill", "calls"]), (OneHotEncoder(), ["contract", "area"])
)
clf = EMTransitionClassifier(max_epochs=20, batch_size=64, cv=None, random_state=0)
pipe = Pipeline([("columns", columns), ("clf", clf)])

# %%
# The search
# ----------
# `VerifiedKFold` splits the verified samples only; all other samples are always in the
# training set. The score is the accuracy on held-out verified samples.
from sklearn.model_selection import GridSearchCV

grid = {"clf__lr": [0.001, 0.01], "clf__module__hidden": [(), 32]}
search = GridSearchCV(pipe, grid, cv=VerifiedKFold(2))
search.fit(X, labels)
results = pd.DataFrame(search.cv_results_).sort_values("rank_test_score")
results[["param_clf__lr", "param_clf__module__hidden", "mean_test_score"]].round(3)

# %%
# The result
# ----------
# The search refits the best parameters on all samples.
from sklearn.base import clone

from noisytransition import CrossEntropyClassifier

ignoring = Pipeline(
    [("columns", clone(columns)), ("clf", CrossEntropyClassifier(random_state=0))]
)
ignoring.fit(X, labels["written"])
print(f"test accuracy: {search.score(table[700:], truth[700:]):.3f}")
print(f"ignoring the noise: {ignoring.score(table[700:], truth[700:]):.3f}")
print(search.best_estimator_["clf"].transition_summary())

# %%
from sklearn.metrics import ConfusionMatrixDisplay

best = search.best_estimator_["clf"]
display = ConfusionMatrixDisplay(best.transition_matrix_, display_labels=best.classes_)
display.plot(cmap="Blues", values_format=".2f")
display.ax_.set(xlabel="noisy label", ylabel="true label")
