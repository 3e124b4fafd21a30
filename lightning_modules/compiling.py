"""What `model.compile` needs of the machine."""

import os
import shutil

from core.errors import InputError


def check_compiler() -> None:
    """Refuse a machine without a C++ compiler, which torch.compile calls on CPUs."""
    compilers = (os.environ.get("CXX", "g++"), "clang++")
    if not any(shutil.which(name) for name in compilers):
        raise InputError(
            "model.compile needs a C++ compiler, and there is neither g++ nor clang++ here; "
            "install one, name it in CXX, or leave compile out."
        )
