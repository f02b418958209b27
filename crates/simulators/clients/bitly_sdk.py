"""Reads a simulated Bitly with the PyPI package `bitly-api-sdk`. The simulator's JSON line is in SIMULATOR."""

import json
import os

from bitlyapi.bitlyapi_client import BitlyapiClient
from bitlyapi.configuration import Configuration, Environment, Server
from bitlyapi.exceptions.notfound_exception import NOTFOUNDException
from bitlyapi.http.auth.o_auth_2 import BearerAuthCredentials

simulator = json.loads(os.environ["SIMULATOR"])
JSON = "application/json"

# The client has no option for another address.
Configuration.environments[Environment.PRODUCTION][Server.SERVER_1] = simulator["url"]


def client(token):
    return BitlyapiClient(bearer_auth_credentials=BearerAuthCredentials(access_token=token))


def main():
    bitly = client(simulator["token"])
    user = bitly.user.retrieve_a_user(JSON)
    assert user.login and user.emails, user
    # It expects objects where the API has plain values and reads those as nothing: lengths are what it can show.
    groups = bitly.groups.retrieve_groups(None, JSON).groups
    assert len(groups) >= 1, groups
    assert bitly.group_guid.retrieve_tags_by_group(simulator["group"], JSON) is not None
    assert bitly.misc.get_bs_ds(JSON) is not None
    limits = bitly.user.get_platform_limits("/groups/{group_guid}/bitlinks", JSON).platform_limits
    assert len(limits) == 1 and len(limits[0].methods) == 1, limits

    page = first_page(bitly)
    assert len(page.links) == min(100, simulator["links"]), len(page.links)
    assert page.pagination is not None

    missing = f"{simulator['domain']}/3nothing"
    refused(404, NOTFOUNDException, lambda: bitly.bitlink.retrieve_a_bitlink(missing, JSON))
    refused(401, Exception, lambda: client("0" * 40).user.retrieve_a_user(JSON))
    print(f"bitly-api-sdk (PyPI): {len(groups)} groups, {len(page.links)} links of the first page agree")


def first_page(bitly):
    return bitly.bitlinks.retrieve_bitlinks_by_group(
        size=100, page=1, keyword=None, query=None, created_before=None, created_after=None, modified_after=None,
        archived="both", deeplinks=None, domain_deeplinks=None, campaign_guid=None, channel_guid=None,
        custom_bitlink=None, tags=None, launchpad_ids=None, encoding_login=None, group_guid=simulator["group"],
        accept=JSON,
    )


def refused(status, kind, ask):
    try:
        ask()
    except kind as error:
        assert error.response_code == status, error
        return
    raise AssertionError(f"expected {status}")


main()
