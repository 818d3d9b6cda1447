"""Scrapes of `/snmp` and `/probe` on real stores and real agents."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import yaml

from poller.bootstrap import Services
from poller.collectors.snmp.modules import module_parser
from poller.db.inventory import devices
from poller.domain.inventory.draft import DeviceDraft
from poller.domain.scrapes import scrape_query
from poller.domain.scrapes.scrape_poll import ScrapePoll
from poller.metering import process_metrics
from poller.observability.exposition import text_format
from poller.service.scrapes.known_devices import KnownDevices
from tests.integration import exporters
from tests.integration.exporters import WALKS, Exposed
from tests.integration.scrape_worlds import ScrapeWorld, packets_in
from tests.integration.test_collector_snmp_hostile import IF_X_TABLE, honest
from tests.integration.test_collector_snmp_hostile import agent as agent_of
from tests.unit.collectors.snmp_agent import Request

EVERYTHING = WALKS / "everything.yml"
TIMEOUT = "X-Prometheus-Scrape-Timeout-Seconds"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An snmpd that serves the recorded walk."""
    with exporters.snmpd(tmp_path_factory.mktemp("walk"), WALKS / "everything.snmprec") as port:
        yield port


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An snmpd that serves the tree of this machine."""
    with exporters.snmpd(tmp_path_factory.mktemp("machine")) as port:
        yield port


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with exporters.exporter(EVERYTHING, tmp_path_factory.mktemp("exporter")) as address:
        yield address


@pytest.fixture
def world(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScrapeWorld]:
    made = ScrapeWorld(services, monkeypatch, snmp_config=(str(EVERYTHING),))
    made.announce_worker()
    yield made
    made.close()


@pytest.fixture
def plain(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScrapeWorld]:
    """A world without module files."""
    made = ScrapeWorld(services, monkeypatch)
    made.announce_worker()
    yield made
    made.close()


def snmp(port: int, module: str = "", **more: str) -> str:
    parameters = {"target": f"127.0.0.1:{port}", "module": module, **more}
    pairs = [f"{key}={quote(value)}" for key, value in parameters.items() if value]
    return "/snmp?" + "&".join(pairs)


def value(text: str, series: str) -> float:
    [line] = [each for each in text.splitlines() if each.startswith(f"{series} ")]
    return float(line.rpartition(" ")[2])


def shown(text: str) -> Exposed:
    """The samples without those about the scrape."""
    lines = [line for line in text.split("\n") if "poller_" not in line]
    return exporters.exposed("\n".join(lines) + "\n")


@pytest.mark.parametrize("is_known", [False, True], ids=["stranger", "last poll"])
def test_a_scrape_has_the_exporters_samples(
    world: ScrapeWorld, agent: int, exporter: str, is_known: bool
) -> None:
    """Name, labels, value, type and help of every sample equal those of Debian's snmp_exporter."""
    modules = [name for name in sorted(_modules()) if name != "old"]
    if is_known:
        world.add_credential("lab", "public")
        options = {"modules": modules, "config": [str(EVERYTHING)]}
        world.poll(world.add_device("sw1", agent, "lab", options=options))
    answers = world.get_all([snmp(agent, module) for module in modules])
    for module, answer in zip(modules, answers, strict=True):
        expected = exporters.theirs(exporter, agent, module)
        assert isinstance(expected, Exposed), expected
        assert answer.status_code == 200, answer.text
        found = exporters.differences(expected, shown(answer.text))
        # Stored values are floats: a whole number beyond 2**53 is rounded.
        rounded = {"tBig_total{}", "tBiggest{}"} if is_known else set()
        assert found.keys() <= rounded, (module, found)
    assert len(world.sent) <= (3 if is_known else len(modules))


def _modules() -> list[str]:
    return list(module_parser.read(EVERYTHING.read_text(), "everything").modules)


def test_ten_scrapers_of_a_stranger_are_one_poll(plain: ScrapeWorld, machine: int) -> None:
    """Two web processes and the packet counter of the agent agree."""
    before = packets_in(machine)
    answers = plain.get_all([snmp(machine, "system")] * 10, processes=2)
    assert [answer.status_code for answer in answers] == [200] * 10
    assert len({answer.text for answer in answers}) == 1
    sent = value(answers[0].text, 'snmp_scrape_packets_sent{module="system"}')
    assert packets_in(machine) - before == sent + 1
    assert len(plain.sent) == 1


def test_a_device_of_the_inventory_answers_from_its_last_poll(
    plain: ScrapeWorld, machine: int
) -> None:
    """By name and by address, whole or one module of it, without a packet to the device."""
    plain.add_credential("lab", "public")
    plain.poll(plain.add_device("sw1", machine, "lab", options={"modules": ["system", "if_mib"]}))
    before = packets_in(machine)
    paths = [
        "/snmp?target=sw1",
        snmp(machine, "if_mib"),
        f"/snmp?target=udp://127.0.0.1:{machine}&module=if_mib&module=system&auth=lab",
    ]
    whole, one, both = plain.get_all(paths)
    assert packets_in(machine) - before == 1
    assert plain.sent == []
    assert "sysDescr" in whole.text
    assert "sysDescr" not in one.text
    assert "ifHCInOctets" in one.text
    assert shown(both.text).samples == shown(whole.text).samples
    assert value(one.text, 'snmp_scrape_packets_sent{module="if_mib"}') == 0
    assert 0 <= value(one.text, "poller_scrape_age_seconds") < 30


def test_what_no_target_covers_is_polled_with_the_devices_login(
    plain: ScrapeWorld, machine: int
) -> None:
    """The message has the id of the credential, and no secret."""
    plain.add_credential("lab", "public")
    plain.poll(plain.add_device("sw1", machine, "lab", options={"modules": ["system"]}))
    answers = plain.get_all(
        [f"/snmp?target={name}&module=ucd" for name in ("sw1", f"sw1:{machine}")]
    )
    assert [answer.status_code for answer in answers] == [200, 200], answers[1].text
    [sent] = plain.sent
    assert sent.credential_id is not None
    assert '"public"' not in sent.to_json()
    assert sent.options == {"port": machine, "modules": ["ucd"]}


def test_a_device_without_modules_chooses_them(plain: ScrapeWorld, machine: int) -> None:
    """Its sysObjectID is that of net-snmp on Linux."""
    answer = plain.get(snmp(machine))
    assert {"sysDescr", "ifHCInOctets", "laLoadInt"} <= shown(answer.text).families.keys()


def test_a_stale_target_is_polled_through_the_board(plain: ScrapeWorld, machine: int) -> None:
    """Those who wait get the next poll; nobody sends one of their own."""
    plain.add_credential("lab", "public")
    target = plain.add_device("sw1", machine, "lab", options={"modules": ["system"]})

    def poll_when_demanded() -> None:
        urgent = plain.services.keys.urgent("poll.snmp")
        until = time.monotonic() + 10
        while not plain.services.redis.zcard(urgent) and time.monotonic() < until:
            time.sleep(0.02)
        plain.poll(target)

    worker = threading.Thread(target=poll_when_demanded)
    worker.start()
    answers = plain.get_all(["/snmp?target=sw1&module=system"] * 3)
    worker.join()
    assert [answer.status_code for answer in answers] == [200] * 3, answers[0].text
    assert plain.sent == []


def test_a_failing_target_is_told_at_once(plain: ScrapeWorld, free_port: int) -> None:
    """The last failure is the answer, as of an exporter whose scrape fails."""
    plain.add_credential("lab", "public")
    plain.poll(plain.add_device("sw1", free_port, "lab", options={"modules": ["system"]}))
    answer = plain.get("/snmp?target=sw1&module=system")
    assert answer.status_code == 500
    assert "error polling sw1/snmp: unreachable" in answer.text


@pytest.mark.parametrize("is_known", [False, True], ids=["stranger", "last poll"])
def test_a_table_that_fails_is_named_and_the_rest_is_there(
    plain: ScrapeWorld, is_known: bool
) -> None:
    """snmp_exporter would answer with 500 and nothing."""

    def handler(request: Request) -> list[bytes]:
        if request.oids[0].startswith(IF_X_TABLE):
            return [request.answer([(request.oids[0], b"\x05\0")], 5)]
        return honest(request)

    with agent_of(handler) as made:
        if is_known:
            plain.add_credential("lab", "public")
            target = plain.add_device("sw1", made.port, "lab", options={"modules": ["if_mib"]})
            plain.poll(target)
        answer = plain.get(snmp(made.port, "if_mib"))
    assert answer.status_code == 200, answer.text
    assert value(answer.text, f'poller_partial{{module="if_mib",table="{IF_X_TABLE}"}}') == 1
    assert "ifMtu" in answer.text
    assert bool(plain.sent) is not is_known


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/snmp", 400, "'target' parameter must be specified once\n"),
        ("/snmp?target=127.0.0.1" + "&a=1" * 100, 400, "more than 100 parameters\n"),
        ("/snmp?target=127.0.0.1&module=nope", 400, "Unknown module 'nope'\n"),
        ("/snmp?target=127.0.0.1&auth=nope", 400, "Unknown auth 'nope'\n"),
        ("/snmp?target=127.0.0.1&snmp_context=x", 400, "'snmp_context' needs an SNMPv3 login"),
        ("/snmp?target=tcp://127.0.0.1", 400, "SNMP is polled over UDP only"),
        ("/snmp?target=192.0.2.1", 403, "is no device of the inventory"),
        ("/snmp?target=nowhere.invalid", 403, "is no device of the inventory"),
        ("/probe?target=127.0.0.1&module=dns", 400, 'Unknown module "dns"'),
        ("/probe?module=icmp", 400, "Target parameter is missing\n"),
        ("/probe?target=192.0.2.1&module=icmp", 403, "is no device of the inventory"),
        ("/-/reload", 400, "POST method expected\n"),
        ("/-/healthy", 200, "Healthy"),
    ],
)
def test_refusals_have_the_exporters_words(
    plain: ScrapeWorld, path: str, status: int, text: str
) -> None:
    """Nothing is sent to any worker."""
    answer = plain.get(path)
    assert (answer.status_code, text in answer.text) == (status, True), answer.text
    assert plain.sent == []


def test_a_token_of_one_site_scrapes_its_devices_only(plain: ScrapeWorld, machine: int) -> None:
    """Neither strangers nor other sites nor another credential: it could collect secrets."""
    plain.add_credential("lab", "public")
    plain.add_credential("other", "secret")
    plain.add_device("sw1", machine, "lab", site="ams", options={"modules": ["system"]})
    devices.add(plain.services.engine, DeviceDraft("sw2", "127.0.0.2", site="fra"), [])
    paths = {
        "/snmp?target=sw1&module=ucd": 200,
        "/snmp?target=sw1&module=ucd&auth=other": 403,
        "/snmp?target=sw2&module=ucd": 403,
        "/snmp?target=127.0.0.2&module=ucd": 403,
        "/snmp?target=127.0.0.3&module=ucd": 403,
    }
    answers = plain.get_all(list(paths), site="ams")
    assert {path: each.status_code for path, each in zip(paths, answers, strict=True)} == paths
    assert len(plain.sent) == 1


def test_without_the_right_nothing_is_scraped(plain: ScrapeWorld) -> None:
    """Also the modules and the reload need the scope."""
    for path in ("/snmp?target=127.0.0.1", "/probe?target=127.0.0.1", "/config", "/-/reload"):
        assert plain.get(path, given=()).status_code == 403


def test_no_worker_and_too_many_polls_are_told_in_time(
    services: Services, monkeypatch: pytest.MonkeyPatch, machine: int
) -> None:
    """503 says that poller, not the device, is at fault."""
    world = ScrapeWorld(services, monkeypatch, scrape_polls=1)
    headers = {TIMEOUT: "1"}
    answer = world.get(snmp(machine, "system"), headers=headers)
    assert (answer.status_code, "no running worker" in answer.text) == (503, True)

    world.announce_worker()
    monkeypatch.setattr(world.runner, "run", lambda *_: None)  # a worker that died
    started = time.monotonic()
    answers = world.get_all([snmp(machine, "system"), snmp(machine, "ucd")], headers=headers)
    assert time.monotonic() - started < 5
    texts = sorted(answer.text for answer in answers)
    assert [answer.status_code for answer in answers] == [503, 503]
    assert texts[0].startswith("1 polls for scrapes run already")
    assert texts[1].startswith("no worker answered within 0.9 s")
    world.close()


def test_a_greedy_scraper_leaves_others_their_share(
    services: Services, monkeypatch: pytest.MonkeyPatch, machine: int
) -> None:
    """All polls of a scraper that is alone; half of them once another one has asked, too."""
    world = ScrapeWorld(services, monkeypatch, scrape_polls=2)
    world.announce_worker()
    monkeypatch.setattr(world.runner, "run", lambda *_: None)  # no poll ends before its time
    paths = [snmp(machine, "system"), snmp(machine, "ucd"), snmp(machine, "if_mib")]
    headers = {TIMEOUT: "1"}
    alone = world.get_all(paths, headers=headers, token="greedy")
    assert [each.text[:5] for each in alone].count("2 pol") == 1, alone

    world.get(paths[0], headers=headers, token="other")
    greedy = world.get_all(paths[:2], headers=headers, token="greedy")
    assert sum("its share beside other" in each.text for each in greedy) == 1
    world.close()


def test_a_scrape_that_had_little_time_does_not_speak_for_one_with_more(plain: ScrapeWorld) -> None:
    """Its failure is known for a second, and is no answer to a scrape that can wait."""
    is_awake = threading.Event()

    def handler(request: Request) -> list[bytes]:
        return honest(request) if is_awake.is_set() else []

    with agent_of(handler) as made:
        hasty = plain.get(snmp(made.port, "if_mib"), headers={TIMEOUT: "1"})
        is_awake.set()
        patient = plain.get(snmp(made.port, "if_mib"), headers={TIMEOUT: "10"})
    assert (hasty.status_code, patient.status_code) == (500, 200), (hasty.text, patient.text)
    assert len(plain.sent) == 2


def test_a_scrape_without_any_time_is_told_so(
    plain: ScrapeWorld, machine: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header of a billionth of a second is no fault of a store. A busy machine gets more time."""
    monkeypatch.setattr(scrape_query, "_LEAST_S", 5.0)
    answer = plain.get(snmp(machine, "ucd"), headers={TIMEOUT: "1e-9"})
    assert (answer.status_code, answer.text[:18]) == (503, "no worker answered")


def test_without_the_sql_sink_every_scrape_is_a_poll(
    services: Services, monkeypatch: pytest.MonkeyPatch, machine: int
) -> None:
    """There is no last poll to answer from. The name of another sink changes nothing."""
    tables = {"sql": {"kind": "stream"}}
    world = ScrapeWorld(services, monkeypatch, sinks=("sql",), sink=tables)
    world.announce_worker()
    world.add_credential("lab", "public")
    world.add_device("sw1", machine, "lab", options={"modules": ["system"]})
    assert world.get("/snmp?target=sw1").status_code == 200
    [sent] = world.sent
    assert sent.options["modules"] == ["system"]
    world.close()


def test_an_edit_of_the_inventory_reaches_scrapes(plain: ScrapeWorld, machine: int) -> None:
    """A kept device is read again within a second of a change."""
    plain.add_credential("lab", "public")
    known = KnownDevices(plain.services)
    assert known.find("sw1") == ()
    plain.add_device("sw1", machine, "lab")
    known.refresh()
    [device] = known.find("sw1")
    assert (device.credential, device.targets[0].options) == ("lab", {"port": machine})


@pytest.mark.parametrize(
    ("query", "success", "metrics"),
    [
        ("module=ping&target=127.0.0.1", 1, ["ping_up"]),
        ("module=tcp_connect&target=127.0.0.1:{closed}", 0, ["ping_tcp_accepted"]),
        ("target=http://127.0.0.1:{closed}/", 0, ["http_up"]),
    ],
)
def test_a_probe_has_the_metrics_of_blackbox_exporter(
    plain: ScrapeWorld, free_port: int, query: str, success: int, metrics: list[str]
) -> None:
    """A target that is down is an answer with status 200."""
    answer = plain.get("/probe?" + query.format(closed=free_port))
    assert answer.status_code == 200, answer.text
    assert value(answer.text, "probe_success") == success
    assert value(answer.text, "probe_duration_seconds") >= 0
    for name in metrics:
        assert f"# HELP {name} " in answer.text


def test_the_modules_are_shown_without_logins(world: ScrapeWorld) -> None:
    """The file has a module with a community."""
    answer = world.get("/config")
    assert answer.status_code == 200
    found = yaml.safe_load(answer.text)["modules"]
    assert set(_modules()) <= set(found)
    assert "auth" not in found["old"]


def test_a_poll_that_runs_is_not_started_again(plain: ScrapeWorld) -> None:
    """A Redis that lost its memory lets the next scrape send the message a second time."""
    is_awake = threading.Event()
    asked: list[str] = []

    def handler(request: Request) -> list[bytes]:
        asked.append(request.oids[0])
        is_awake.wait(10)
        return honest(request)

    with agent_of(handler) as made:
        options = {"port": made.port, "modules": ["if_mib"]}
        wanted = ScrapePoll("snmp", "127.0.0.1", options, is_public=True)
        for _ in range(2):
            plain.runner.run(wanted, wanted.name, 10.0)
        until = time.monotonic() + 10
        while not asked and time.monotonic() < until:
            time.sleep(0.01)
        assert len(plain.runner._running) == 1
        is_awake.set()
        while plain.runner._running and time.monotonic() < until:
            time.sleep(0.01)
    assert asked.count(asked[0]) == 1


def test_scrapes_are_counted_in_the_names_of_snmp_exporter(
    plain: ScrapeWorld, machine: int
) -> None:
    """One poll for three scrapes counts once; a refusal and an answer from a last poll count."""
    for instrument in process_metrics.INSTRUMENTS:
        instrument.clear()
    process_metrics.begin("web")
    plain.get_all([snmp(machine, "system")] * 3)
    plain.get("/snmp?target=127.0.0.1&module=nope")
    plain.add_credential("lab", "public")
    plain.poll(plain.add_device("sw1", machine, "lab", options={"modules": ["system"]}))
    plain.get("/snmp?target=sw1")
    found = exporters.exposed(text_format.render([text_format.of_process("web", "web")]).decode())
    values = {
        (name, *sorted(dict(labels).items())): number
        for (name, labels), number in found.samples.items()
    }
    process = (("process", "web"), ("role", "web"))

    def number(name: str, **labels: str) -> float:
        return values[(name, *sorted([*process, *labels.items()]))]

    for answer, times in {"poll": 3, "refused": 1, "last_poll": 1, "failed": 0}.items():
        assert number("poller_scrapes_total", path="/snmp", answer=answer) == times
    assert number("snmp_collection_duration_seconds_count", module="system") == 1
    assert number("snmp_request_errors_total") == 1
    assert number("snmp_request_in_flight") == 0
    assert number("snmp_packets_total") >= 1
    assert number("snmp_packet_retries_total") == 0
