"""Search treats a hyphenated word as one word, too, so that *min-p* does not find every p."""

import re

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

HYPHENED = re.compile(r"\b\w+(?:[-\u2010\u2011]\w+)+\b")  # U+2011 is non-breaking

# In the browser, a hyphenated word is one term if the index has it, otherwise its parts.
SPLIT = r"""
function splitQuery(query) {
  const known = (word) => {
    const stem = new Stemmer().stemWord(word.toLowerCase());
    const { terms = {}, titleterms = {} } = Search._index ?? {};
    return Object.hasOwn(terms, stem) || Object.hasOwn(titleterms, stem);
  };
  const joined = query.replace(/[\p{L}\p{N}_]+(?:[-\u2010\u2011][\p{L}\p{N}_]+)+/gu, (words) => {
    const one = words.replace(/[-\u2010\u2011]/g, "");
    return known(one) ? one : words;
  });
  return joined.split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu).filter((term) => term);
}
"""


class Hyphens(SearchEnglish):
    """English, with each hyphenated word indexed as one word besides its parts."""

    js_splitter_code = SPLIT

    def split(self, input: str) -> list[str]:  # noqa: A002 (Sphinx's name)
        return super().split(input) + [
            re.sub(r"\W", "", found) for found in HYPHENED.findall(input)
        ]


def setup(app: Sphinx) -> None:
    app.add_search_language(Hyphens)
