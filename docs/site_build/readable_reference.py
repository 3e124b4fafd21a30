"""The API reference as it should be read.

Examples are code, each thing is shown once, where it is defined, and modules are in order.
"""

import re

from griffe import Alias, Extension, Module, Object

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1(?!```)\S.*|\n\1 +\S.*)*", re.MULTILINE)


class ReadableReference(Extension):
    """What mkdocstrings is given of the project's packages, which are read and never imported."""

    def on_object(self, *, obj: Object, **kwargs) -> None:
        """Fence examples in a docstring, which Markdown would take for quotations."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_package(self, *, pkg: Module, **kwargs) -> None:
        """Hide imported names, of a package and of all modules within, and sort the modules."""
        for member in pkg.members.values():
            if isinstance(member, Alias):
                member.public = False
        modules = [member for member in pkg.members.values() if isinstance(member, Module)]
        for module in sorted(modules, key=lambda module: module.name):
            pkg.members[module.name] = pkg.members.pop(module.name)
            self.on_package(pkg=module)

    def on_wildcard_expansion(self, *, alias: Alias, **kwargs) -> None:
        """Hide what a module takes over whole from another."""
        alias.public = False


def fenced(text: str) -> str:
    """A docstring with its examples in fences; one ends with a blank line, as doctest has it.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'More.']
    """
    return EXAMPLE.sub(lambda example: f"{example[1]}```pycon\n{example[0]}\n{example[1]}```", text)
