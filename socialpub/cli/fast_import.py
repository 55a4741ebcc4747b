"""Imports modules without garbage collection, which would take a tenth of the start of a command."""

import gc
import sys
from importlib import import_module
from types import ModuleType


def load(*names: str) -> ModuleType:
    """Import these modules, and return the last."""
    if not all(name in sys.modules for name in names):
        gc.disable()
        try:
            for name in names:
                import_module(name)
        finally:
            gc.freeze()
            gc.enable()
    return sys.modules[names[-1]]
