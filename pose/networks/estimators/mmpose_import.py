"""Import of `mmpose` without compiled operators of mmcv.

Full `mmcv` does not compile against current torch, so `mmcv-lite` replaces it. `mmcv-lite` lacks `mmcv.ops`. mmpose and
mmdet import `mmcv.ops` at start, but top-down pose models of convolutions and attention do not use it. It is therefore
replaced. Each name in the replacement is a class that raises an error when used.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pose.errors import PoseError

PACKAGE = "mmcv.ops"
# Layers that `mmcv.ops` registers in MMEngine and that configs name.
LAYERS = ("DCN", "DCNv2", "SAC", "carafe", "MultiScaleDeformableAttention")


class MissingOperatorError(PoseError):
    """Error for a model that needs a compiled operator of mmcv."""


class _Operators(ModuleType):
    """Replacement of `mmcv.ops` or a submodule, in which every public name is a class that cannot be instantiated."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(self: object, *arguments: object, **options: object) -> None:
            raise MissingOperatorError(f"needs mmcv's compiled operator {name}, which mmcv-lite does not have")

        operator = type(name, (), {"__init__": refuse})
        setattr(self, name, operator)
        return operator


class _OperatorFinder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname == PACKAGE or fullname.startswith(f"{PACKAGE}."):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Operators(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, because the names of the module are created on access."""


def stand_in_for_operators() -> None:
    """Make `mmcv.ops` importable. Do nothing if mmcv was compiled with its operators."""
    if importlib.util.find_spec("mmcv._ext") is None and not any(isinstance(f, _OperatorFinder) for f in sys.meta_path):
        sys.meta_path.insert(0, _OperatorFinder())
        from mmengine.registry import MODELS

        operators = importlib.import_module(PACKAGE)
        for layer in LAYERS:
            MODELS.register_module(layer, module=getattr(operators, layer))


def import_apis() -> Any:
    """Import `mmpose.apis`."""
    try:
        import mmcv  # noqa: F401
    except ImportError as error:
        raise _not_installed(error) from error
    stand_in_for_operators()
    try:
        import mmpose.apis
    except ImportError as error:
        raise _not_installed(error) from error
    return mmpose.apis


def _not_installed(error: ImportError) -> PoseError:
    return PoseError(f"the mmpose estimator needs MMPose ({error}): run `pose-setup mmpose`")
