"""The version of the package, which `User-Agent` names too."""

VERSION = "1.0.0"
