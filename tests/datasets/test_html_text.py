"""The text of a page."""

import pytest

from cmvmed.datasets.html_text import html_to_text


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<title>CS 302</title><p>Home <b>page</b>", ["CS", "302", "Home", "page"]),
        ("&Uacute;lfar &amp; Co", ["Úlfar", "&", "Co"]),
        ("<p>before<script>var a = 'code';</script><style>p {}</style>after", ["before", "after"]),
        ("<!-- hidden --><IMG SRC='x.gif' alt='<--'>shown", ["shown"]),
        ("MIME-Version: 1.0\nServer: CERN/3.0\nContent-type: text/html\n\n<p>body", ["body"]),
        ("HTTP/1.0 200 OK\r\nDate: Monday\r\n\r\n<p>body", ["body"]),
        ("To contact me:\n\n<a>mail</a>", ["To", "contact", "me:", "mail"]),
        ("Note: not a header\n\nbody", ["Note:", "not", "a", "header", "body"]),
        ("", []),
        ("a < b", ["a", "<", "b"]),
    ],
)  # fmt: skip
def test_only_what_a_reader_sees_is_left(page, words):
    assert html_to_text(page).split() == words
