"""The top-level domains that make a bare word such as `example.com` a link."""

from pathlib import Path

_LINES = (Path(__file__).parent / "tlds.txt").read_text("utf-8").splitlines()
TLDS = frozenset(tld for line in _LINES if not line.startswith("#") for tld in line.split())
"""The top-level domains that X knows, in lower case and in their own script."""

_YOUNGER = frozenset({"amazon", "kids", "music", "spa"})
_RETIRED = frozenset(
    """
    abarth active adac afamilycompany aigo alfaromeo an avianca bananarepublic bentley bl blanco bnl boots bq budapest
    bugatti cancerresearch cartier caseih cbs ceb chloe chrysler cityeats comcast cookingchannel csc dabur dodge doha
    doosan duck dunlop duns eh epost esurance etisalat everbank fiat flsmidth foodnetwork frontdoor fujixerox glade
    goodhands guardian hgtv honeywell hoteles htc iinet intel iselect iveco iwc jcp jlc kerrylogistics kinder ladbrokes
    lancaster lancia lancome liaison linde lipsy lixil loft lupin macys maserati mcd mcdonalds meo metlife mf mobily
    montblanc mopar movistar mtpc mutual mutuelle nadex nationwide natura newholland northwesternmutual off oldnavy
    onion onyourside orientexpress pamperedchef panerai passagens piaget pramerica qvc raid redstone rightathome rmit
    rocher sapo sca scjohnson scor ses shaw showtime shriram spiegel spreadbetting srt starhub statoil swiftcover
    symantec telecity telefonica tiffany tp travelchannel uconnect um vista vistaprint volkswagen vuelos warman xfinity
    xperia zippo
    """.split()  # noqa: SIM905
)
CURRENT_TLDS = TLDS - _RETIRED | _YOUNGER
"""The top-level domains that Bluesky's app knows: those of the package `tlds` 1.261, November 2026."""
