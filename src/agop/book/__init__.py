"""Running, checking and rendering the book; nothing here does mathematics.

A chapter needs two names, and they import nothing heavy:

>>> from agop.book import Page, figures
"""

from agop.book import figures
from agop.book.page import Page

__all__ = ["Page", "figures"]
