"""Features of small images without a deep network: a classifier trains on them in seconds on a CPU.

The features are soft assignments of whitened patches to k-means centroids, pooled over the four quadrants (Coates, Ng
and Lee, "An Analysis of Single-Layer Networks in Unsupervised Feature Learning", AISTATS 2011). They need no labels.
"""

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans

SIZE, N_CENTROIDS, N_PATCHES = 6, 400, 100_000
# added to the variance of a patch (pixels 0 to 255) and of its principal components; values of the authors' code
CONTRAST, WHITENING = 10.0, 0.1


def image_features(images, seed):
    """Return standardised features (n, 4 * N_CENTROIDS), float32, of images (n, height, width, 3), uint8."""
    random = np.random.default_rng(seed)
    every = patches(images[random.permutation(len(images))[:2000]]).flatten(0, 1)
    drawn = normalised(every[torch.from_numpy(random.permutation(len(every))[:N_PATCHES])])
    mean, whiten = drawn.mean(0), whitening(drawn)
    kmeans = MiniBatchKMeans(N_CENTROIDS, random_state=seed, batch_size=4096, n_init=1, max_iter=20)
    centroids = torch.from_numpy(kmeans.fit(((drawn - mean) @ whiten).numpy()).cluster_centers_)
    side = images.shape[1] - SIZE + 1
    pooled = []
    for batch in np.array_split(images, -(-len(images) // 64)):
        distances = torch.cdist((normalised(patches(batch)) - mean) @ whiten, centroids)
        near = (distances.mean(2, keepdim=True) - distances).clamp_min(0)
        maps = near.transpose(1, 2).unflatten(2, (side, side))
        pooled.append(torch.nn.functional.adaptive_avg_pool2d(maps, 2).flatten(1))
    found = torch.cat(pooled)
    return ((found - found.mean(0)) / (found.var(0) + 0.01).sqrt()).numpy()


def patches(images):
    """Return all patches of all images: (n, positions, values)."""
    pixels = torch.from_numpy(np.ascontiguousarray(images)).float().permute(0, 3, 1, 2)
    return torch.nn.functional.unfold(pixels, SIZE).transpose(1, 2)


def normalised(values):
    """Normalise the brightness and contrast of each patch."""
    centred = values - values.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + CONTRAST).sqrt()


def whitening(values):
    """Return a matrix that decorrelates the values (ZCA)."""
    variances, axes = torch.linalg.eigh(torch.cov(values.T))
    return axes / (variances.clamp_min(0) + WHITENING).sqrt() @ axes.T
