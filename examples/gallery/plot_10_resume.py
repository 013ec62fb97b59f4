"""
Resume an interrupted fit, save a fitted one
============================================

An interrupted fit resumes from its last epoch, with exactly the same result.
"""

# %%
# An interrupted fit
# ------------------
# ``state=folder`` saves the fit after every epoch. In this example, a callback raises
# KeyboardInterrupt (Ctrl-C) in the 8th epoch of the third training.
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback

from noisytransition import EMTransitionClassifier, flip_labels
from noisytransition.transition import pair_noise


class Log(Callback):
    """Print the first epoch of each training."""

    interrupt = False
    trainings = 0

    def on_train_begin(self, net, **kwargs):
        """Count the trainings."""
        Log.trainings += 1
        self.first = True

    def on_epoch_begin(self, net, **kwargs):
        """Raise KeyboardInterrupt in one epoch."""
        epoch = len(net.history)  # includes this epoch
        if self.first:
            print(f"training {Log.trainings} begins with epoch {epoch}")
        self.first = False
        if Log.interrupt and (Log.trainings, epoch) == (3, 8):
            raise KeyboardInterrupt


X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
y_noisy = flip_labels(y, pair_noise(3, 0.4), random_state=0)
verified = np.arange(len(y)) % 5 == 0
labels = {"y": y_noisy, "y_verified": np.where(verified, y, -1)}  # -1: not verified
params = {"max_epochs": 15, "random_state": 0}
folder = Path(tempfile.mkdtemp()) / "fit"

Log.interrupt = True
try:
    clf = EMTransitionClassifier(callbacks=[Log()], **params)
    clf.fit(X, **labels, state=folder)
except KeyboardInterrupt:
    print("interrupted")

# %%
# The saved files
# ---------------
# Each training that has begun has a file: a warm-up and two folds. The files contain
# numbers and text, but no code.
for file in sorted(folder.iterdir()):
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")

# %%
# Resume
# ------
# The same call loads the first two trainings, resumes the third, and runs the others.
Log.interrupt, Log.trainings = False, 2
clf = EMTransitionClassifier(callbacks=[Log()], **params)
clf = clf.fit(X, **labels, state=folder)

# %%
# The result equals that of an uninterrupted fit:
uninterrupted = EMTransitionClassifier(**params).fit(X, **labels)
print(clf.transition_matrix_, uninterrupted.transition_matrix_, sep="\n\n")
difference = np.abs(clf.predict_proba(X) - uninterrupted.predict_proba(X)).max()
print(f"\nlargest difference of the posteriors: {difference}")

# %%
# The history of each training is complete:
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for stage, history in clf.histories_.items():
    ax.plot(range(1, len(history) + 1), history[:, "train_loss"], label=stage)
ax.axvline(8, color="0.5", linestyle="--", label="interrupted, in fold_1")
ax.set(xlabel="epoch", ylabel="training loss")
ax.legend()

# %%
# Save the fitted classifier
# --------------------------
# One file has T, histories and weights. Loading it runs no code.
from noisytransition import load

file = folder.with_name("clf.safetensors")
clf.save(file)
print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")
print(load(file).transition_summary())
