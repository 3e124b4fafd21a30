"""Examples in docstrings (`>>> …`) as code: Markdown would take them for quotations."""

import re

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1(?!```)\S.*|\n\1 +\S.*)*", re.MULTILINE)


class DoctestBlocks(Extension):
    """Fences every run of example lines, which ends with a blank line as doctest has it."""

    def on_object(self, *, obj: Object, **kwargs) -> None:
        """Rewrite the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its examples in fences.

    >>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'More.']
    """
    return EXAMPLE.sub(lambda example: f"{example[1]}```pycon\n{example[0]}\n{example[1]}```", text)
