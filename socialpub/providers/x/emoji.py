"""Which code points X counts together as one emoji.

The reference knows the sequences of 2018 by heart. Here their form is known instead (UTS #51: keycaps, flags, tags,
skin tones, presentation selectors, joined figures), so that an emoji of next year counts 2 like every other. What has
the form of no emoji at all (a flag of no country, a tone on a car, five figures joined) is left apart, as there.
"""

import re

_REGIONS = """
AC AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC
CD CF CG CH CI CK CL CM CN CO CP CQ CR CU CV CW CX CY CZ DE DG DJ DK DM DO DZ EA EC EE EG EH ER ES ET EU FI FJ FK FM FO
FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU IC ID IE IL IM IN IO IQ IR IS IT JE JM JO
JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT
MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA
SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TA TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM
UN US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW
"""
"""Flags of Unicode's emoji-test 12.0 (January 2019), and CQ of 16.0."""

_TEXT_BY_DEFAULT = """
203C 2049 2139 2194-2199 21A9-21AA 2328 23CF 23ED-23EF 23F1-23F2 23F8-23FA 24C2 25AA-25AB 25B6 25C0 25FB-25FC 2600-2604
260E 2611 2618 261D 2620 2622-2623 2626 262A 262E-262F 2638-263A 2640 2642 2660 2663 2665-2666 2668 267B 267E 2692
2694-2697 2699 269B-269C 26A0 26A7 26B0-26B1 26C8 26CF 26D1 26D3 26E9 26F0-26F1 26F4 26F7-26F9 2702 2708-2709 270C-270D
270F 2712 2714 2716 271D 2721 2733-2734 2744 2747 2763-2764 27A1 2934-2935 2B05-2B07 3030 303D 3297 3299 1F170-1F171
1F17E-1F17F 1F202 1F237 1F321 1F324-1F32C 1F336 1F37D 1F396-1F397 1F399-1F39B 1F39E-1F39F 1F3CB-1F3CE 1F3D4-1F3DF 1F3F3
1F3F5 1F3F7 1F43F 1F441 1F4FD 1F549-1F54A 1F56F-1F570 1F573-1F579 1F587 1F58A-1F58D 1F590 1F5A5 1F5A8 1F5B1-1F5B2 1F5BC
1F5C2-1F5C4 1F5D1-1F5D3 1F5DC-1F5DE 1F5E1 1F5E3 1F5E8 1F5EF 1F5F3 1F5FA 1F6CB 1F6CD-1F6CF 1F6E0-1F6E5 1F6E9 1F6F0 1F6F3
"""
"""Emoji that U+FE0F makes colourful (emoji-test 12.0; 26A7 of 13.0)."""

_TONED = """
261D 26F9 270A-270D 1F385 1F3C2-1F3C4 1F3C7 1F3CA-1F3CC 1F442-1F443 1F446-1F450 1F466-1F469 1F46B-1F46F 1F470-1F478
1F47C 1F481-1F483 1F485-1F487 1F48F 1F491 1F4AA 1F574-1F575 1F57A 1F590 1F595-1F596 1F645-1F647 1F64B-1F64F
1F6A3 1F6B4-1F6B6 1F6C0 1F6CC 1F90C 1F90F 1F918-1F91F 1F926 1F930-1F939 1F93C-1F93E 1F977 1F9B5-1F9B6
1F9B8-1F9B9 1F9BB 1F9CD-1F9CF 1F9D1-1F9DD 1FAC3-1FAC5 1FAF0-1FAF8
"""
"""Emoji that take a skin tone (emoji-test 12.0 with the additions to 17.0)."""

_ONLY_WITH_SELECTOR = "\u00a9\u00ae\u2122\u265f"
"""Signs that are plain text unless U+FE0F follows."""

_COLOURFUL = """
231A-231B 23E9-23EC 23F0 23F3 25FD-25FE 2614-2615 2648-2653 267F 2693 26A1 26AA-26AB 26BD-26BE 26C4-26C5 26CE 26D4 26EA
26F2-26F3 26F5 26FA 26FD 2705 270A-270B 2728 274C 274E 2753-2755 2757 2795-2797 27B0 27BF 2B1B-2B1C 2B50 2B55
1F004 1F0CF 1F18E 1F191-1F19A 1F201 1F21A 1F22F 1F232-1F236 1F238-1F23A 1F250-1F251 1F300-1F3FA 1F400-1F64F 1F680-1F6FF
1F7E0-1F7F0 1F90C-1FAFF
"""
"""The rest, with room in its blocks for what is still to come."""

MAX_JOINED = 4
"""Figures in the longest joined sequence there is (a family, a kiss)."""


def _characters(ranges: str) -> str:
    """`261D 26F7-26F9` as the inside of a character class."""
    return "".join("-".join(re.escape(chr(int(point, 16))) for point in part.split("-")) for part in ranges.split())


def _flags() -> str:
    letters = dict.fromkeys(sorted({region[0] for region in _REGIONS.split()}), "")
    for region in _REGIONS.split():
        letters[region[0]] += _regional(region[1])
    return "|".join(f"{_regional(first)}[{seconds}]" for first, seconds in letters.items())


def _regional(letter: str) -> str:
    return chr(0x1F1E6 + ord(letter) - ord("A"))


_TONE = "[\U0001f3fb-\U0001f3ff]"
_FIGURE = (
    f"(?:[{_characters(_TONED)}]{_TONE}"
    f"|[{_characters(_TEXT_BY_DEFAULT)}{_ONLY_WITH_SELECTOR}]\ufe0f"
    f"|[{_characters(_TEXT_BY_DEFAULT)}{_characters(_COLOURFUL)}])"
)
_TAGGED = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"

SEQUENCE = re.compile(f"[0-9#*]\ufe0f?\u20e3|{_flags()}|{_TAGGED}|{_FIGURE}(?:\u200d{_FIGURE}){{0,{MAX_JOINED - 1}}}")
"""One emoji, however many code points it is made of."""


def find(text: str) -> dict[int, int]:
    """Where each emoji begins, and the length of it in code points."""
    return {match.start(): len(match[0]) for match in SEQUENCE.finditer(text)}
