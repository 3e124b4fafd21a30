"""Pages of the site that lie at the top of the repository.

Each text is kept once, and its links are turned to fit the site.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, before links are checked."""
    top = Path(config.config_file_path).parent
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=turned((top / name).read_text())))
    return files


def on_page_markdown(markdown: str, page: Page, **kwargs) -> str:
    """Keep single tables out of the search: the reports hold them all."""
    if "/tables/" in page.file.src_uri:
        page.meta["search"] = {"exclude": True}
    return markdown


def on_page_content(html: str, **kwargs) -> str:
    """Make tables readable: cells with much text are marked, so that they can be wide enough, and
    long paths may be broken after a slash, a dot or an underscore.
    """
    html = re.sub(
        r"<td>(.*?)</td>",
        lambda cell: f'<td class="long">{cell[1]}</td>' if len(_text(cell[1])) > 50 else cell[0],
        html,
        flags=re.DOTALL,
    )
    return re.sub(
        r"(?<=<code>)[^<\n]{20,}(?=</code>)",
        lambda code: re.sub(r"(?<=[/_])(?=\w)|(?<=\.)(?=\w{4})", "<wbr>", code[0]),
        html,
    )


def _text(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html)


def turned(text: str) -> str:
    """The same text with links that fit a page in docs/.

    What lies neither there nor among these pages loses its link.

    >>> turned("[a](docs/a.md), [b](CONTRIBUTING.md#b), [c](LICENSE), [d](https://d.org)")
    '[a](a.md), [b](contributing.md#b), `LICENSE`, [d](https://d.org)'
    """
    text = re.sub(
        r"(?<!!)\[[^\]]*\]\(((?!docs/)[^)#:]+)\)",
        lambda link: link[0] if link[1] in PAGES else f"`{link[1]}`",
        text,
    )
    return LINK.sub(
        lambda link: f"]({PAGES.get(link[1], link[1].removeprefix('docs/'))}{link[2] or ''})", text
    )
