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
n = 1700
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
# 150 customers were called back: their labels are verified. The customers after the
# first 700 are the test set.
X, X_test, y_test = table[:700], table[700:], truth[700:]
labels = pd.DataFrame({"written": written[:700]})
labels.loc[:149, "verified"] = truth[:150]
pd.crosstab(labels["verified"], labels["written"])

# %%
# The Pipeline
# ------------
# `TransitionClassifierCV` takes any scikit-learn classifier.
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from noisytransition import TransitionClassifierCV, VerifiedKFold

columns = make_column_transformer(
    (StandardScaler(), ["bill", "calls"]), (OneHotEncoder(), ["contract", "area"])
)
clf = TransitionClassifierCV(LogisticRegression(), random_state=0)
pipe = Pipeline([("columns", columns), ("clf", clf)])

# %%
# The search
# ----------
# `VerifiedKFold` splits the verified samples only; all other samples are always in the
# training set. The score is the accuracy on held-out verified samples. The search
# refits the best parameter on all samples.
from sklearn.model_selection import GridSearchCV

search = GridSearchCV(pipe, {"clf__estimator__C": [0.01, 1, 100]}, cv=VerifiedKFold(3))
search.fit(X, labels)
results = pd.DataFrame(search.cv_results_)
print(results[["param_clf__estimator__C", "mean_test_score"]].round(3))
print(search.best_estimator_["clf"].transition_summary())

# %%
# The result
# ----------
# The simple ways train the same logistic regression on all reasons as they were
# written, or on the verified ones only.
accuracy = {"with T": search.score(X_test, y_test)}
pipe.set_params(clf=LogisticRegression(C=search.best_params_["clf__estimator__C"]))
pipe.fit(X[:150], truth[:150])
accuracy["verified only"] = pipe.score(X_test, y_test)
pipe.fit(X, labels["written"])
accuracy["ignoring the noise"] = pipe.score(X_test, y_test)
accuracy = pd.Series(accuracy)
print(accuracy.round(3))

# %%
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = ax.barh(accuracy.index, accuracy, color=["tab:blue", "silver", "silver"])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.set(xlabel="test accuracy", xlim=(0, 1))
ax.invert_yaxis()
