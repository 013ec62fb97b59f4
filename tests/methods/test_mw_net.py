import copy

import numpy as np
import pytest
import torch
from reference import meta_weight_net as twin
from torch import nn
from torch.nn import functional as F
from training import On, fit

from noisytransition import MWNetClassifier


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("kind", "inner_lr"), [("mlp", 0.03), ("batch-norm", None)])
def test_a_fit_on_whole_batches_is_algorithm_1(blobs, kind, inner_lr):
    X, y, X_clean, y_clean, *_ = blobs
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8) if kind == "batch-norm" else nn.Identity()
    module = nn.Sequential(nn.Linear(4, 8), norm, nn.Tanh(), nn.Linear(8, 3))
    started = []
    note = On(train_begin=lambda net, *args, **kwargs: started.append(copy.deepcopy(net.criterion_.weight_net)))
    params = {"batch_size": -1, "max_epochs": 5, "lr": 0.1, "optimizer": torch.optim.SGD}
    own = {"weight_lr": 0.05, "inner_lr": inner_lr, "optimizer__weight_decay": 0.01}
    clf = fit(MWNetClassifier, blobs, module=module, callbacks=[note], **own, **params)
    theirs, V = copy.deepcopy(module), started[0]
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, weight_decay=0.01)
    weight_optimizer = torch.optim.Adam(V.parameters(), lr=0.05, weight_decay=1e-4)
    noisy, meta = ((torch.tensor(a), torch.tensor(b)) for a, b in ((X, y), (X_clean, y_clean)))
    for _ in range(5):
        twin.iteration(theirs, optimizer, V, weight_optimizer, noisy, meta, 0.1 if inner_lr is None else inner_lr)
    for ours, expected in zip(clf.net_.criterion_.parameters(), V.parameters(), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-11)
    for name, value in clf.net_.module_.named_parameters():
        torch.testing.assert_close(value, dict(theirs.named_parameters())[name], rtol=1e-8, atol=1e-11)
    with torch.no_grad():
        weights = V(F.cross_entropy(theirs.eval()(noisy[0]), noisy[1], reduction="none")[:, None])[:, 0]
    np.testing.assert_allclose(clf.sample_weights(X, y), weights, rtol=1e-6)
