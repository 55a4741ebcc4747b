"""What stories of the doctor share: networks that answer bare questions, and how a finding is picked."""

from collections.abc import Iterable

from socialpub.core.settings.loader import Settings
from socialpub.core.settings.networks import TikTokSection, XSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.ops.doctor import checks
from socialpub.ops.health import Finding, Level
from socialpub.providers.http import Http
from socialpub.providers.responses import HttpResponse
from socialpub.runtime import Runtime

NETWORKS = ProvidersSection(
    x=XSection.model_validate({"client_id": "app"}),
    tiktok=TikTokSection.model_validate({"client_key": "app", "client_secret": "secret"}),
)


class AnsweringHttp(Http):
    """Answers every bare question with `answers`."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, HttpResponse | Exception] = {}
        self.asked: list[str] = []

    def call(self, method: str, url: str, **_: object) -> HttpResponse:
        self.asked.append(url)
        answer = self.answers.get(url, HttpResponse(404))
        if isinstance(answer, Exception):
            raise answer
        return answer


HERE = "http://127.0.0.1:8000"


def shows(instance_id: str) -> HttpResponse:
    return HttpResponse(200, {}, b'{"status":"ok","instance":"%s"}' % instance_id.encode())


def the(found: list[Finding], subject: str, level: Level = Level.PROBLEM) -> Finding:
    """The one finding of this kind; a problem says what to do about it."""
    (finding,) = [finding for finding in found if (finding.subject, finding.level) == (subject, level)]
    assert finding.remedy or level is not Level.PROBLEM
    return finding


def problems(found: list[Finding]) -> list[str]:
    return [finding.subject for finding in found if finding.level is Level.PROBLEM]


def with_remedies(found: Iterable[Finding]) -> list[Finding]:
    """Every warning and problem has a remedy."""
    seen = list(found)
    assert [finding for finding in seen if not finding.remedy and finding.level is not Level.OK] == []
    return seen


def inside(rt: Runtime) -> list[Finding]:
    return with_remedies(checks.check(rt))


def outside(settings: Settings) -> list[Finding]:
    return with_remedies(checks.check_offline(settings)[0])


def goes_on(settings: Settings) -> bool:
    return checks.check_offline(settings)[1]
