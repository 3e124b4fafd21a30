"""What every page of ours is made of: one file that needs no network, with its style in it."""

import base64
import html
from collections.abc import Iterable, Sequence

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 66rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.notice { border-left: 5px solid #D55E00; background: #fdf1e9; padding: .4rem .8rem;
  margin: .5rem 0; font-weight: 600; }
.caption { color: #444; font-size: .87rem; margin: .3rem 0 1rem; } .caption b { color: #A84300; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; border-top: 2px solid #222; border-bottom: 2px solid #222;
  font-variant-numeric: tabular-nums; font-size: .93rem; }
th, td { padding: .35rem .5rem; text-align: right; vertical-align: top; white-space: nowrap; }
thead th { border-bottom: 1px solid #222; white-space: normal; vertical-align: bottom; }
th.row { text-align: left; font-weight: 600; }
th:first-child { padding-left: 0; } th.minor { font-weight: normal; }
th.minor:first-child { padding-left: 1rem; }
tbody tr + tr > * { border-top: 1px solid #e4e4e4; }
.listing th, .listing td, .listing th:first-child { text-align: left; font-weight: normal;
  padding-left: 0; }
.listing thead th:nth-child(n) { font-weight: 600; }
.listing .number { text-align: right; }
.listing .long { white-space: normal; min-width: 11rem; font-size: .87rem; }
td span { display: block; font-size: .75rem; color: #555; } td .published { color: #005A8C; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; } a { color: #005A8C; }
pre { background: #f6f6f6; padding: .7rem; overflow-x: auto; font-size: .8rem; line-height: 1.4; }
summary { cursor: pointer; margin: .4rem 0; }
"""


def document(title: str, parts: Iterable[str], mark: str = "<!doctype html>\n") -> str:
    """A whole page of parts that are HTML already; the title is any text.

    >>> "<title>a &lt; b</title>" in document("a < b", [])
    True
    """
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join(parts)
    return f'{mark}<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def caption(sentences: Sequence[str]) -> str:
    """Sentences below a table or figure; what nobody may overlook is bold."""
    marked = (
        f"<b>{html.escape(s)}</b>" if s.startswith(("SIMULATED", "REDUCED")) else html.escape(s)
        for s in sentences
    )
    return f'<p class="caption">{" ".join(marked)}</p>'


def details(summary: str, text: str, is_open: bool = False) -> str:
    """A text that unfolds."""
    return (
        f"<details{' open' * is_open}><summary>{html.escape(summary)}</summary>"
        f"<pre>{html.escape(text)}</pre></details>"
    )


def picture(svg: bytes, title: str, inches: float) -> str:
    """A figure of this width, within the page."""
    data = base64.b64encode(svg).decode()
    return (
        f'<img alt="{html.escape(title)}" width="{round(inches * 115)}" '
        f'src="data:image/svg+xml;base64,{data}">'
    )
