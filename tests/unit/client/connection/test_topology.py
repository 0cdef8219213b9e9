"""URLs that name several nodes are split into their parts."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.topology import parsed

SECRET, OTHER = "s3cr3t", "0th3r"


def test_a_url_of_sentinels_names_them_the_service_and_the_database() -> None:
    found = parsed("redis+sentinel://h1:1,h2,[::1]:3/my%2Fmaster/4")
    assert found.nodes == (("h1", 1), ("h2", 26379), ("::1", 3))
    assert (found.service, found.options["db"], found.tls) == ("my/master", 4, False)
    assert found.where == "redis+sentinel://h1:1,h2:26379,[::1]:3/my%2Fmaster/4"


def test_a_url_of_a_cluster_names_some_of_its_nodes() -> None:
    found = parsed(f"valkeys+cluster://me:{SECRET}@h1:1,h2/3")
    assert (found.nodes, found.service, found.tls) == ((("h1", 1), ("h2", 6379)), "", True)
    assert found.where == "rediss+cluster://h1:1,h2:6379/3"
    assert (found.options["db"], found.options["password"]) == (3, SECRET)
    assert found.asking["password"] == SECRET
    assert "db" not in found.asking
    assert parsed("redis+cluster://h1/").where == "redis+cluster://h1:6379"


def test_queues_of_a_cluster_share_a_map_and_a_connection_serves_one_slot() -> None:
    one, two = Endpoint("redis+cluster://h1").at("{a}"), Endpoint("redis+cluster://h1").at("{b}")
    assert one.slots is two.slots
    assert one.address is not two.address
    assert one.identity != two.identity
    assert one.at("{b}").address is two.address


@pytest.mark.parametrize(("scheme", "tls"), [("redis", False), ("valkey", False), ("rediss", True), ("valkeys", True)])
def test_tls_is_for_the_server_and_for_those_who_name_it(scheme: str, tls: bool) -> None:
    found = parsed(f"{scheme}+sentinel://h1/mymaster?ssl_ca_certs=%2Fca.pem")
    assert (found.tls, found.asking_tls) == (tls, tls)
    assert found.options["ssl_ca_certs"] == found.asking["ssl_ca_certs"] == "/ca.pem"


def test_each_password_goes_to_its_own_kind_of_server_and_is_never_shown() -> None:
    found = parsed(f"redis+sentinel://me:{SECRET}@h1/mymaster?sentinel_username=you&sentinel_password={OTHER}")
    assert (found.options["username"], found.options["password"]) == ("me", SECRET)
    assert (found.asking["username"], found.asking["password"]) == ("you", OTHER)
    assert "host" not in found.options
    for shown in (found.where, repr(found)):
        assert SECRET not in shown
        assert OTHER not in shown


def test_a_password_may_be_spelled_with_odd_characters() -> None:
    found = parsed("redis+sentinel://me:a%40b%2Fc@h1/mymaster?sentinel_password=%26%3D%2B")
    assert found.options["password"] == "a@b/c"
    assert found.asking["password"] == "&=+"


@pytest.mark.parametrize("more", ["", "?socket_timeout=3"])
def test_endpoints_of_the_same_nodes_share_what_they_know(more: str) -> None:
    url = f"redis+sentinel://h1,h2/mymaster{more}"
    one, two, other = Endpoint(url), Endpoint(url), Endpoint("redis+sentinel://h1,h2/another")
    assert one.address is two.address
    assert one.address is not other.address
    assert one.identity == two.identity != other.identity


def test_a_timeout_in_the_url_stands_unless_a_call_needs_another() -> None:
    endpoint = Endpoint("redis+sentinel://h1/mymaster?socket_timeout=3")

    def timeout(client: Any) -> Any:
        return client.connection_pool.connection_kwargs["socket_timeout"]

    assert timeout(endpoint.asynchronous()) == timeout(endpoint.blocking()) == 3
    assert timeout(endpoint.asynchronous(7)) == timeout(endpoint.blocking(7)) == 7
    assert timeout(Endpoint("redis+sentinel://h1/mymaster").asynchronous()) == 10
