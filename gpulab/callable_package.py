"""Packages that can be called, so that ``gpulab.gpus()`` lists GPUs although ``gpulab.gpus`` is a package.

Importing a package binds it in its parent, over the function of the same name that users expect there.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any


def make_callable(package: str, function: Callable[..., Any]) -> None:
    """Let a call of the imported `package` (its ``__name__``) be a call of `function`."""

    class CallablePackage(types.ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    CallablePackage.__call__.__doc__ = function.__doc__
    sys.modules[package].__class__ = CallablePackage
