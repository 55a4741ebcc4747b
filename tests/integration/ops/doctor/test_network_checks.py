"""What the doctor says of the apps: the redirect address to register, and what TikTok has not audited."""

from typing import Any

from socialpub.core.settings.networks import PinterestSection, XSection
from socialpub.db.models import ProfileRow
from socialpub.ops.doctor import checks
from socialpub.ops.health import Finding, Level
from socialpub.providers import registry
from socialpub.runtime import Runtime
from tests.support.appliance import add_profile, settings_in
from tests.support.doctor import HERE, NETWORKS, AnsweringHttp, inside, shows, the


def redirects_of(rt: Runtime, base_url: str, http: AnsweringHttp, **sections: Any) -> list[Finding]:
    """Return the findings about redirect addresses."""
    networks = NETWORKS.model_copy(update=sections)
    rt.settings = rt.settings.model_copy(update={"base_url": base_url, "providers": networks})
    rt.providers = registry.build(networks)
    http.answers[f"{base_url}/healthz"] = shows(rt.instance_id)
    return [finding for finding in inside(rt) if finding.subject == "redirect address"]


def test_the_doctor_says_which_address_and_which_kind_of_app_to_register(rt, http):
    x, tiktok = redirects_of(rt, HERE, http)
    assert x.message == "X: register the redirect address http://127.0.0.1:8000/oauth/x/callback with the app."
    assert "http://127.0.0.1:8000/oauth/tiktok/callback with a desktop app" in tiktok.message
    _, tiktok = redirects_of(rt, "https://social.example.com", http)
    assert "https://social.example.com/oauth/tiktok/callback with a web app" in tiktok.message
    assert {x.level, tiktok.level} == {Level.OK}


def test_an_address_that_a_network_refuses_is_a_problem_that_names_the_setting(rt, http):
    pinterest = PinterestSection.model_validate({"client_id": "app", "client_secret": "secret"})
    x, tiktok, pinned = redirects_of(rt, "http://box.lan:8000", http, pinterest=pinterest)
    assert {one.level for one in (x, tiktok, pinned)} == {Level.PROBLEM}
    assert "TikTok does not accept the redirect address http://box.lan:8000/oauth/tiktok/callback" in tiktok.message
    assert 'redirect_url = "http://127.0.0.1:8000/oauth/tiktok/callback" in [providers.tiktok]' in str(tiktok.remedy)
    assert "a desktop app" in str(tiktok.remedy)
    assert "paste the address from its address bar" in str(tiktok.remedy)
    assert "http://localhost:8000/oauth/pinterest/callback" in str(pinned.remedy)
    own = {
        name: {"redirect_url": f"http://{host}:8000/oauth/{name}/callback"}
        for name, host in (("x", "127.0.0.1"), ("tiktok", "127.0.0.1"), ("pinterest", "localhost"))
    }
    changed = {
        name: section.model_copy(update=own[name])
        for name, section in (("x", NETWORKS.x), ("tiktok", NETWORKS.tiktok), ("pinterest", pinterest))
    }
    assert {one.level for one in redirects_of(rt, "http://box.lan:8000", http, **changed)} == {Level.OK}


def test_an_account_that_works_makes_a_refused_address_a_note(rt, http):
    profile = add_profile(rt)
    x, _ = redirects_of(rt, "http://localhost:8000", http)
    assert x.level is Level.NOTE
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, status="reauthRequired"))
    x, _ = redirects_of(rt, "http://localhost:8000", http)
    assert x.level is Level.PROBLEM


def test_the_sandbox_has_no_rule_for_its_redirect_address(rt, http):
    x = XSection.model_validate({"client_id": "app", "api_url": "http://127.0.0.1:8100/x"})
    (tiktok,) = redirects_of(rt, "http://box.lan:8000", http, x=x)
    assert "TikTok" in tiktok.message


def test_an_app_that_tiktok_has_not_audited_is_a_note_with_the_other_way(rt, http):
    redirects_of(rt, HERE, http)
    found = the(inside(rt), "app", Level.NOTE)
    assert "At most five accounts may post directly in 24 hours" in found.message
    assert "accounts that you or your team manage" in found.message
    assert 'mode "draft"' in str(found.remedy)
    redirects_of(rt, HERE, http, tiktok=NETWORKS.tiktok.model_copy(update={"audited": True}))
    assert [finding for finding in inside(rt) if finding.subject == "app"] == []


def test_before_the_first_start_the_address_to_register_is_shown(tmp_path):
    found, goes_on = checks.check_offline(settings_in(tmp_path, providers=NETWORKS))
    assert not goes_on
    assert next(one for one in found if one.subject == "redirect address").message.startswith("X: register")
