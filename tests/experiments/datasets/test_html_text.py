"""Text of a web page."""

import time

import pytest

from experiments.datasets.webkb import MAX_PAGE_BYTES, html_to_text


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
        ("a < b <3 <", ["a", "b", "3"]),
        ("<!-- one --> two <!-- <b> three -- > four", ["two", "four"]),
        ("one <!-- never closed> two", ["one", "two"]),
        ("<a href='never closed>one</a> two", ["one", "two"]),
        ("one <a href", ["one", "a", "href"]),
        ("one <SCRIPT> never closed", ["one"]),
        ("<script>x</SCRIPT >one", ["one"]),
    ],
)  # fmt: skip
def test_markup_is_removed(page, words):
    assert html_to_text(page).split() == words


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<!--", "</", "<!-- -", "<a b='", '<a ">" ', "<script></", "&#", "Date: x\n"]
)
def test_the_time_for_the_largest_page_is_limited(piece):
    page = (piece * MAX_PAGE_BYTES)[:MAX_PAGE_BYTES]
    started = time.process_time()
    html_to_text(page)
    assert time.process_time() - started < 3
