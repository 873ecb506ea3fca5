"""Verifies credentialed audio with a Takemark service."""

from . import types
from .client import Client
from .errors import TakemarkError
from .version import VERSION as __version__

__all__ = ["Client", "TakemarkError", "__version__", "types"]
