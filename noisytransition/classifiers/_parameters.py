"""Parameters of a classifier: those that its constructor names, and skorch's that were given."""

from typing import Any

from sklearn.base import BaseEstimator

from ._names import check_names, is_net_name, merged_signature


class NetParameters(BaseEstimator):
    """An estimator whose ``**net_params`` are parameters like the named ones: in `get_params`, clones and searches."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            setattr(cls.__init__, "__signature__", merged_signature(cls.__init__, super(cls, cls).__init__))  # noqa: B010

    def _set_net_params(self, net_params: dict[str, Any]) -> None:
        """Store what the constructor got beyond its named parameters."""
        check_names(net_params, set(self._get_param_names()), TypeError, type(self).__name__)
        for name, value in net_params.items():
            setattr(self, name, value)

    @property
    def _net_params(self) -> dict[str, Any]:
        named = set(self._get_param_names())
        return {name: value for name, value in vars(self).items() if is_net_name(name) and name not in named}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, skorch's that were given among them.

        Parameters
        ----------
        deep : bool, default=True
            As in scikit-learn.

        Returns
        -------
        dict of str to object
        """
        return super().get_params(deep) | self._net_params

    def set_params(self, **params: Any) -> "NetParameters":
        """Set parameters, of the classifier or of its nets (``lr``, ``module__hidden``, ``optimizer__momentum``).

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a name that nothing here knows.
        """
        check_names(params, set(self._get_param_names()), ValueError, type(self).__name__)
        for name, value in params.items():
            setattr(self, name, value)
        return self
