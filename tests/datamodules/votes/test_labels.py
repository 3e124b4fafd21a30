"""Labels that look alike, and what is printed of labels that nobody can print."""

import unicodedata

import pytest

from datamodules.votes.labels import _LATIN, look_alikes, printed


@pytest.mark.parametrize(
    ("first", "second", "differ_in"),
    [
        ("yes", "yes ", "blanks"),
        ("not sure", "not\u00a0sure", "blanks"),
        ("notsure", "not sure", "blanks"),
        ("yes", "Yes", "case"),
        ("STRASSE", "straße", "case"),
        ("yes", "yes\u200b", "characters without width"),
        ("yes", "\u202eyes", "characters without width"),
        ("yes", "y\u00ades", "characters without width"),
        ("\u2764", "\u2764\ufe0f", "characters without width"),
        ("no", "n\u034fo", "characters without width"),
        ("no", "no\U000e0101", "characters without width"),
        ("no", "n\u180bo\u180f", "characters without width"),
        ("no", "no\x07", "characters without width"),
        ("no", "no\u3164", "blanks"),
        ("not sure", "not\u2800sure", "blanks"),
        ("not sure", "not\uffa0sure\u115f\u1160", "blanks"),
        ("Kelvin", "\u212aelvin", "case"),
        ("yes", " YES\u200b", "blanks, case or characters without width"),
        ("cat", "c\u0430t", "look-alike letters"),
        ("No", "N\u03bf", "look-alike letters"),
        ("yes", "\uff59es", "look-alike letters"),
        ("caf\u00e9", "cafe\u0301", "look-alike letters"),
        ("O", "\u043e", "look-alike letters"),
        ("caf\u00e9", "cafe\u034f\u0301", "look-alike letters"),
    ],
)
def test_pairs_that_a_person_takes_for_one(first: str, second: str, differ_in: str):
    (result,) = look_alikes(["other", first, "an\u043ether", second])
    assert result == (first, second, differ_in)
    message = str(result)
    assert message.isprintable()
    assert message.endswith(f"({differ_in})")
    one, other = message.removesuffix(f" ({differ_in})").split(" and ")
    assert one.strip("'") != other.strip("'") or differ_in == "blanks"


@pytest.mark.parametrize(
    "names",
    [
        ["yes", "no", "unsure"],
        ["0", "1", "10"],
        ["cafe", "caf\u00e9"],
        ["\u0434\u0430", "\u043d\u0435\u0442"],
        ["O", "0"],
        [],
    ],
)
def test_labels_that_differ(names: list[str]):
    assert look_alikes(names) == []


def test_every_pair_of_many_is_found_once():
    names = [name for word in ("yes", "no") for name in (word, f" {word}", word.upper())]
    assert [(pair.first, pair.second) for pair in look_alikes(names)] == [
        ("yes", " yes"),
        ("yes", "YES"),
        ("no", " no"),
        ("no", "NO"),
    ]


def test_the_letters_are_of_other_alphabets_and_look_like_what_they_stand_for():
    for like, latin in _LATIN.items():
        assert not chr(like).isascii()
        assert latin.isascii()
        assert unicodedata.name(latin).startswith("LATIN")
        assert chr(like).isupper() == latin.isupper()


NOTHING_TO_SEE = "\xad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u180f\u200b\u200f\u202e\u2060\u2065\u2800\u3164\ufe0f\ufeff\uffa0\ufff8\U0001d159\U0001d173\U000e0100"  # noqa: E501


@pytest.mark.parametrize("letter", NOTHING_TO_SEE)
def test_what_shows_nothing_is_printed_by_its_number_and_found(letter: str):
    assert printed(f"n{letter}o") == f"n{letter.encode('unicode_escape').decode()}o"
    assert len(look_alikes(["no", f"n{letter}o", f"no{letter}"])) == 2


@pytest.mark.parametrize(
    "name",
    ["caf\u00e9", "cafe\u0301", "na\u0308ive", "\u65e5\u672c", "\ud55c", "\u28ff", "\u0928\u0940"],
)
def test_what_shows_is_printed_as_it_is(name: str):
    assert printed(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "yes",
        "\x1b[2J\x07",
        "\u202eabc",
        "a\nb",
        "x" * 10**7,
        "\x00" * 10**6,
        "\U0010ffff" * 100,
    ],
)
def test_what_is_printed_is_a_short_line(name: str):
    assert printed(name).isprintable()
    assert len(printed(name)) <= 60
    assert name != "yes" or printed(name) == name
