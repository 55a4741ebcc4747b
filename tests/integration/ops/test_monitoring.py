"""The Grafana dashboard and the alert rules use existing metrics, and name a remedy."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from socialpub.accounts import tokens
from socialpub.core.settings.schema import StorageSection
from socialpub.db.backup_format import BackupSummary
from socialpub.db.tables import notifications
from socialpub.ops import health
from socialpub.ops.backup import last_backup
from socialpub.ops.webhooks import receivers
from socialpub.providers.base import Published, Refused
from socialpub.web import metrics
from socialpub.web.http.state import WebState
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork

MONITORING = Path(__file__).parents[3] / "systemd" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "socialpub-grafana.json").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((MONITORING / "socialpub-alerts.yml").read_text())["groups"][0]["rules"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

Series = dict[str, list[dict[str, str]]]
"""The label sets of each metric."""
OF_THE_SCRAPE = {"instance", "job"}
"""Labels that Prometheus adds."""


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The metrics of an appliance with posts, failures, backups, notifications and a clock change."""
    clock, network = HandClock(), ScriptedNetwork()
    rt = open_appliance(
        tmp_path_factory.mktemp("busy"), clock, providers={"x": network}, storage=StorageSection(quota="1GB")
    )
    profile = add_profile(rt)
    network.results["create_post"] = [Published("1", None), Refused("no")]
    for body in ("One", "Two"):
        accept(rt, profile, body=body)
        drain(rt, clock)
    tokens.renew(rt, profile)
    rt.write(health.record_heartbeat)
    rt.write(last_backup.record_backup, BackupSummary(rt.stamp(), False, 0, 0, 0))
    rt.db.write(lambda tx: notifications.set_services(tx, {"digest": "mailto://example.com"}))
    rt.write(receivers.add, *receivers.parse_url("http://n8n.lan/webhook"))
    clock.jump(3600)
    rt.write(health.record_heartbeat)
    state = WebState(rt)
    state.responses["/api/v1/posts", "GET", 200] += 1
    text, _ = metrics.render_metrics(state, rt.db)
    rt.close()
    return text.decode()


@pytest.fixture(scope="module")
def told(scraped: str) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(scraped):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def queries() -> Iterator[tuple[str, str, str]]:
    """Yield the place, the query and the visible text of each query."""
    for rule in RULES:
        yield rule["alert"], rule["expr"], " ".join(rule["annotations"].values())
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]


def selectors(node: Any) -> Iterator[promql.VectorSelector]:
    match node:
        case promql.VectorSelector():
            yield node
        case promql.MatrixSelector():
            yield node.vector_selector
        case promql.BinaryExpr():
            yield from selectors(node.lhs)
            yield from selectors(node.rhs)
        case promql.Call():
            for argument in node.args:
                yield from selectors(argument)
        case promql.AggregateExpr() | promql.ParenExpr() | promql.SubqueryExpr() | promql.UnaryExpr():
            yield from selectors(node.expr)
        case _:
            assert isinstance(node, promql.NumberLiteral | promql.StringLiteral), node


def grouped_by(node: Any) -> set[str]:
    """Return the labels of the outermost aggregation, or all labels."""
    match node:
        case promql.AggregateExpr() if node.modifier is not None:
            return set(node.modifier.labels)
        case promql.AggregateExpr():
            return grouped_by(node.expr)
        case promql.BinaryExpr():
            return grouped_by(node.lhs) | grouped_by(node.rhs)
        case promql.Call() if node.args:
            return set().union(*(grouped_by(argument) for argument in node.args))
        case promql.VectorSelector() | promql.MatrixSelector():
            return {"*"}
        case _:
            return set()


@pytest.mark.parametrize(("place", "query", "words"), list(queries()))
def test_every_metric_and_label_in_use_exists(told: Series, place: str, query: str, words: str) -> None:
    parsed = promql.parse(query.replace("$instance", ".*"))
    labels = set()
    for selector in selectors(parsed):
        if selector.name == "up":
            continue
        assert selector.name in told, f"{place}: no metric has {selector.name}"
        series = told[selector.name]
        labels |= {label for one in series for label in one}
        for matcher in selector.matchers.matchers:
            if matcher.name in OF_THE_SCRAPE or matcher.value == "5..":
                continue
            assert all(matcher.name in one for one in series), f"{place}: {selector.name} has no {matcher.name}"
            if matcher.op in (promql.MatchOp.Equal, promql.MatchOp.Re):
                for value in matcher.value.split("|"):
                    assert any(one[matcher.name] == value for one in series), f"{place}: {matcher} meets nothing"
    shown = set(re.findall(r"\{\{ *(?:\$labels\.)?([a-z_]+) *\}\}", words))
    kept = grouped_by(parsed)
    assert kept - {"*"} <= labels | OF_THE_SCRAPE, f"{place} is grouped by what is not there"
    assert shown <= ((labels | OF_THE_SCRAPE) if "*" in kept else kept), f"{place} shows a label that is gone by then"


def test_each_alert_says_what_to_do(told: Series) -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert len(rule["annotations"]["description"]) > 40, rule["alert"]


def test_each_panel_says_what_it_shows() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in PANELS:
        assert panel["description"], panel["title"]
        assert panel["targets"], panel["title"]
        assert all("$instance" in target["expr"] for target in panel["targets"]), panel["title"]


def test_every_metric_is_shown(told: Series) -> None:
    """Metrics for detailed analysis only are listed."""
    asked = {selector.name for _, query, _ in queries() for selector in selectors(promql.parse(query.replace("$", "")))}
    unseen = {name.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum") for name in told} - {
        name.removesuffix("_bucket") for name in asked
    }
    assert unseen == {"socialpub_build_info", "socialpub_media_files", "socialpub_posts"}


# --- Prometheus itself -----------------------------------------------------------------------------------------------

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing (Debian: prometheus)")

DAY = 24 * 60
ALERTS: dict[str, tuple[dict[str, str], dict[str, str], int]] = {
    "SocialpubDown": ({'up{job="socialpub"}': "0x30"}, {'up{job="socialpub"}': "1x30"}, 10),
    "SocialpubUnready": (
        {'socialpub_unready{code="overdue"}': "1x30"}, {'socialpub_unready{code="overdue"}': "0x30"}, 10
    ),
    "SocialpubDeliveriesLate": (
        {"socialpub_oldest_due_seconds": "301x30"}, {"socialpub_oldest_due_seconds": "300x30"}, 10
    ),
    "SocialpubDeliveryFailed": (
        {'socialpub_deliveries_total{provider="x",outcome="failed"}': "0x5 1x30"},
        {'socialpub_deliveries_total{provider="x",outcome="failed"}': "0x5 1x200"}, 10
    ),
    "SocialpubOutcomeUnknown": (
        {'socialpub_deliveries_total{provider="x",outcome="unknown"}': "0x5 1x30"},
        {'socialpub_deliveries_total{provider="x",outcome="published"}': "0x5 9x30"}, 10
    ),
    "SocialpubAccountRefused": (
        {'socialpub_profiles{provider="x",status="reauthRequired"}': "1x30"},
        {'socialpub_profiles{provider="x",status="active"}': "1x30"}, 10
    ),
    "SocialpubAccountLapses": (
        {'socialpub_profiles_lapsing{provider="x"}': "1x90"}, {'socialpub_profiles_lapsing{provider="x"}': "0x90"}, 70
    ),
    "SocialpubRefreshesFail": (
        {'socialpub_token_refreshes_total{provider="x",outcome="failed"}': "0x5 1x5 2x5 3x60"},
        {'socialpub_token_refreshes_total{provider="x",outcome="failed"}': "0x5 1x70"}, 60
    ),
    "SocialpubNetworkHeld": ({'socialpub_held{provider="x"}': "1x30"}, {'socialpub_held{provider="x"}': "0x30"}, 10),
    "SocialpubPaused": ({"socialpub_paused": f"1x{DAY + 10}"}, {"socialpub_paused": "1x300 0x1300"}, DAY + 5),
    "SocialpubDiskLow": (
        {"socialpub_disk_free_bytes": "9e8x30", "socialpub_disk_floor_bytes": "5e8x30"},
        {"socialpub_disk_free_bytes": "2e9x30", "socialpub_disk_floor_bytes": "5e8x30"}, 20
    ),
    "SocialpubMediaQuota": (
        {"socialpub_media_bytes": "95x30", "socialpub_media_quota_bytes": "100x30"},
        {"socialpub_media_bytes": "95x30"}, 20
    ),
    "SocialpubWalGrows": (
        {"socialpub_database_wal_bytes": "3e8x60"}, {"socialpub_database_wal_bytes": "4e6x60"}, 45
    ),
    "SocialpubCopyOld": (
        {"socialpub_last_backup_timestamp_seconds": f"0x{10 * DAY}"},
        {"socialpub_last_backup_timestamp_seconds": f"{5 * 86400}x{10 * DAY}"}, 10 * DAY
    ),
    "SocialpubCopyFailed": (
        {"socialpub_last_backup_failure_timestamp_seconds": "60x90"},
        {"socialpub_last_backup_failure_timestamp_seconds": "0x90"}, 75
    ),
    "SocialpubNotificationsFail": (
        {'socialpub_notifications_failing{service="mailto://example.com"}': "1x400"},
        {'socialpub_notifications_failing{service="mailto://example.com"}': "1x100 0x300"}, 390
    ),
    "SocialpubWebhookLate": (
        {'socialpub_webhook_lag_seconds{webhook="1",address="http://n8n.lan"}': "3700x30"},
        {'socialpub_webhook_lag_seconds{webhook="1",address="http://n8n.lan"}': "3500x30"}, 10
    ),
    "SocialpubWebhookDisabled": (
        {'socialpub_webhook_disabled{webhook="1",address="http://n8n.lan"}': "1x30"},
        {'socialpub_webhook_disabled{webhook="1",address="http://n8n.lan"}': "0x30"}, 10
    ),
    "SocialpubFilesRunOut": (
        {'socialpub_process_open_fds{process="web"}': "90x30", 'socialpub_process_max_fds{process="web"}': "100x30"},
        {'socialpub_process_open_fds{process="web"}': "20x30", 'socialpub_process_max_fds{process="web"}': "100x30"}, 15
    ),
    "SocialpubServerErrors": (
        {'socialpub_http_answers_total{route="/api/v1/posts",method="POST",status="503"}': "0+1x30"},
        {'socialpub_http_answers_total{route="/readyz",method="GET",status="503"}': "0+1x30"}, 20
    ),
    "SocialpubClockSet": (
        {"socialpub_clock_set_timestamp_seconds": "0x30"}, {"socialpub_clock_set_timestamp_seconds": "0x200"}, 20
    ),
}  # fmt: skip
"""For each alert: numbers with which it must fire, those with which it must not, and at which minute that is seen."""
LATER = {"SocialpubDeliveryFailed": 100, "SocialpubClockSet": 100}
"""Where the second numbers only end what the first began: the minute at which it is over."""


def test_every_alert_is_tried() -> None:
    assert set(ALERTS) == {rule["alert"] for rule in RULES}


def promtool(*arguments: str, told: str | None = None) -> None:
    done = subprocess.run(["promtool", *arguments], input=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_names(scraped: str) -> None:
    promtool("check", "metrics", told=scraped)


@needs_promtool
def test_each_alert_fires_and_is_over_again(tmp_path: Path) -> None:
    promtool("check", "rules", str(MONITORING / "socialpub-alerts.yml"))
    files = []
    # Each alert has a file of its own: promtool evaluates all rules of a file in every minute of every story.
    for rule in RULES:
        alert = rule["alert"]
        wrong, well, minute = ALERTS[alert]
        stories = []
        for numbers, at, fires in ((wrong, minute, True), (well, LATER.get(alert, minute), False)):
            stories.append(
                {
                    "interval": "1m",
                    "name": f"{alert}, {'wrong' if fires else 'well'}",
                    "input_series": [{"series": name, "values": values} for name, values in numbers.items()],
                    "promql_expr_test": [
                        {
                            "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
                            "eval_time": f"{at}m",
                            "exp_samples": [{"labels": "{}", "value": int(fires)}],
                        }
                    ],
                }
            )
        rules, file = tmp_path / f"{alert}.rules.yml", tmp_path / f"{alert}.yml"
        rules.write_text(yaml.safe_dump({"groups": [{"name": "socialpub", "rules": [rule]}]}))
        file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": stories}))
        files.append(str(file))
    promtool("test", "rules", *files)
