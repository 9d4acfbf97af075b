"""What numpy raises for a damaged npy file: also errors of Python's tokenizer, by which it reads headers."""

from tokenize import TokenError

HEADER_ERRORS = (SyntaxError, TokenError)
NPY_ERRORS = (ValueError, EOFError, *HEADER_ERRORS)
