"""Print versions and hardware for bug reports."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

__all__ = ["show_versions"]

_REQUIRED = ["numpy", "scipy", "pandas", "scikit-learn", "joblib", "skorch", "torch", "safetensors", "jinja2", "tqdm"]
_OPTIONAL = ["matplotlib", "torchvision"]


def show_versions() -> None:
    """Print versions of Python and packages, torch's devices and numbers of threads, for bug reports.

    The version of a package that is not installed is None.

    Examples
    --------
    >>> from noisytransition import show_versions
    >>> show_versions()
    System:
           python: 3...
    """
    system = {"python": sys.version.replace("\n", " "), "executable": sys.executable, "machine": platform.platform()}
    _show("System", system)
    packages = {name: _version(name) for name in ("pip", *_REQUIRED, *_OPTIONAL)}
    _show("Python dependencies", {"noisytransition": sys.modules["noisytransition"].__version__} | packages)

    import torch  # after these lines, which are printed even if it cannot be imported
    from threadpoolctl import threadpool_info

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    _show("torch", {"CUDA build": torch.version.cuda, "CUDA devices": gpus, "MPS": torch.backends.mps.is_available()})
    counts = {"CPUs": os.cpu_count(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
    pools = [f"{pool['prefix']} {pool['version'] or '?'}: {pool['num_threads']}" for pool in threadpool_info()]
    _show("Threads", counts | {"torch": torch.get_num_threads(), "threadpoolctl": ", ".join(pools)})


def _show(title: str, values: dict) -> None:
    print(f"{title}:", *(f"{name:>15}: {value}" for name, value in values.items()), "", sep="\n")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
