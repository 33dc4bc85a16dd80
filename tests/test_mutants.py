"""`make mutants` counts a change as seen only where a test failed."""

from tools import mutants

RESULTS = """
    attnbook.model.masks.x_causal_mask__mutmut_7: killed
    attnbook.model.masks.x_causal_mask__mutmut_17: survived
    attnbook.model.masks.x_causal_mask__mutmut_1: not checked
    attnbook.model.scores.xǁDotScoreǁforward__mutmut_7: timeout
    attnbook.model.scores.xǁDotScoreǁforward__mutmut_27: no tests
    attnbook.model.scores.xǁDotScoreǁforward__mutmut_37: check was interrupted by user
"""


def test_the_score_counts_what_was_tried():
    ends, unseen = mutants.score(RESULTS)
    assert ends == {"killed": 1, "survived": 1, "timeout": 1, "no tests": 1}
    assert unseen == [
        "attnbook.model.masks.x_causal_mask__mutmut_17",
        "attnbook.model.scores.xǁDotScoreǁforward__mutmut_27",
    ]
