"""Tables in Markdown as a renderer shows them: a label is shown as it is, whatever it holds, and
stays in its cell.
"""

from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from studies.tables.listing import Listing, listing_markdown
from studies.tables.markdown import markdown_text

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b>bold</b> word, <!-- no comment --> and <?php ?>",
    "a|b || c",
    r"a\|b \\| c\\",
    "`code` and ``more``",
    "*a* **b** _c_ __d__ ~~e~~",
    "[a link](javascript:alert(1)) and ![a picture](http://127.0.0.1/x.png)",
    "[ref]: http://127.0.0.1",
    "<http://127.0.0.1> <a@b.example>",
    "&lt;b&gt; &#60;b&#62; & so on",
    "$x^2$ and $$y$$",
    "p < 0.05 and 3 > 2",
    "soft_nll of data.votes_per_item",
    r"\*not bold\*",
]


class Shown(HTMLParser):
    """What a page shows: its text, and the tags and attributes it is made of."""

    def __init__(self, page: str):
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_comment(self, data: str) -> None:
        self.tags.add("a comment")


def rendered(text: str) -> Shown:
    return Shown(
        MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_is_shown_as_it_is(text: str):
    shown = rendered(markdown_text(text))
    assert "".join(shown.texts).strip() == text
    assert shown.tags == {"p"}


@pytest.mark.parametrize("text", HOSTILE)
def test_so_are_titles_captions_headings_and_cells_of_a_listing(text: str):
    listing = Listing(
        "l",
        text,
        [f"Of {text}"],
        {"a": text, "b": "second"},
        [{"a": text, "b": 1.5}, {"a": f"{text}\n{text}", "b": 2.5}],
    )
    shown = rendered(listing_markdown(listing))
    assert shown.tags == {"h2", "p", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert shown.attributes <= {"style"}  # of columns of numbers
    words = "".join(shown.texts).split("\n")
    assert words.count(text) == 3  # the title, a heading and a cell
    assert f"{text}{text}" in words  # two lines of one cell
    assert f"Of {text}" in words
    # nothing has moved to another column
    assert len([word for word in words if word in ("1.5000", "2.5000")]) == 2


def test_lines_and_control_characters_are_blanks():
    assert markdown_text("one\ntwo\x1b[2J\u202ethree\r# four") == r"one two \[2J three # four"
