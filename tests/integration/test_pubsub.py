"""Messages out of order, twice, and deletes among them, through Google's fake of Pub/Sub into an index."""

import json
import random
import signal
from datetime import UTC, datetime, timedelta

import pytest
from google.cloud import pubsub
from place import Place
from real_servers import running
from waiting import wait_until

from infra.local.pubsub import PubSub

COMPANIES, VERSIONS, DUPLICATES, BAD = 1_000, 4, 990, 10
PROJECT = "pause-test"
FIRST = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.fixture
def messages():
    with running(PubSub) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", server.address)
        publisher = pubsub.PublisherClient()
        with pubsub.SubscriberClient() as subscriber:
            topic = publisher.topic_path(PROJECT, "companies")
            subscription = subscriber.subscription_path(PROJECT, "companies")
            publisher.create_topic(name=topic)
            subscriber.create_subscription(name=subscription, topic=topic)
            yield publisher, topic, subscription
        publisher.stop()
        publisher.transport.close()


def test_five_thousand_messages_end_in_the_newest_state(server, messages, tmp_path):
    publisher, topic, subscription = messages
    place = Place(tmp_path, server.address)
    sent = [record(number, version) for number in range(COMPANIES) for version in range(VERSIONS)]
    chance = random.Random(3)
    sent += chance.sample(sent, DUPLICATES)
    chance.shuffle(sent)
    run = place.start("--runner=DirectRunner", "--subscription", subscription)
    try:
        for data in [json.dumps(one).encode() for one in sent] + [b"{"] * BAD:
            publisher.publish(topic, data)
        wait_until(lambda: place.index.status().live + place.index.status().tombstones == COMPANIES, run)
        wait_until(lambda: found(place) == wanted(), run)
        wait_until(lambda: len(place.dead()) == BAD, run)
    finally:
        run.send_signal(signal.SIGTERM)  # a shell that starts the tests in the background makes SIGINT be ignored
        said, complained = run.communicate(timeout=60)
    assert run.returncode == 0, complained
    assert said.startswith(f"5,000 read: {BAD} bad, "), said


def record(number: int, version: int) -> dict:
    """The last version of every tenth company is a delete."""
    at = (FIRST + timedelta(seconds=version)).isoformat().replace("+00:00", "Z")
    if version == VERSIONS - 1 and number % 10 == 0:
        return {"id": f"c{number}", "deleted": True, "updated_at": at}
    return {"id": f"c{number}", "description": f"Makes part {number} in its way {version}", "updated_at": at}


def wanted() -> dict[str, str]:
    newest = (record(number, VERSIONS - 1) for number in range(COMPANIES))
    return {one["id"]: one["description"] for one in newest if "description" in one}


def found(place: Place) -> dict[str, str]:
    return {one.id: one.description for batch in place.index.scan() for one in batch}
