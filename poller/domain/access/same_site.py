"""Whether a request that changes something comes from our own pages, by the browser's headers.

A browser adds these headers itself, and no script of another site can change them.
"""

from __future__ import annotations

from urllib.parse import urlsplit

#: Methods that change nothing.
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_OWN = ("same-origin", "none")  # "none": typed by a person, or opened from a bookmark


def is_foreign(fetch_site: str, origin: str, host: str) -> bool:
    """Whether another site caused the request.

    `fetch_site` is the header Sec-Fetch-Site. A request with neither header is from no browser,
    and such a request carries no cookie that its sender did not have.
    """
    if fetch_site:
        return fetch_site not in _OWN
    if origin:
        return urlsplit(origin).netloc.lower() != host.lower()
    return False
