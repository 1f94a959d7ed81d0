"""The Pub/Sub fake: the real protocol on this machine only, and gone with whoever started it."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from google.cloud import pubsub
from real_servers import running

from infra.local.pubsub import PubSub

ROOT = Path(__file__).parents[2]
PROJECT = "pause-tests"


@pytest.fixture(scope="module")
def server():
    with running(PubSub) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", server.address)
        yield server


@pytest.fixture
def subscriber(server):
    with pubsub.SubscriberClient() as subscriber:
        yield subscriber


@pytest.fixture
def publisher(server):
    publisher = pubsub.PublisherClient()
    yield publisher
    publisher.stop()
    publisher.transport.close()


def test_a_hundred_messages_come_out_as_they_went_in_and_what_is_acknowledged_stays_away(server, publisher, subscriber):
    assert server.address.startswith("127.0.0.1:")
    topic, subscription = publisher.topic_path(PROJECT, "in"), subscriber.subscription_path(PROJECT, "out")
    publisher.create_topic(name=topic)
    subscriber.create_subscription(name=subscription, topic=topic)
    futures = [publisher.publish(topic, b"text %d" % number, number=str(number)) for number in range(100)]
    sent = {future.result(timeout=30): number for number, future in enumerate(futures)}

    received = []
    while len(received) < 100:
        received += subscriber.pull(subscription=subscription, max_messages=30, timeout=30).received_messages
    got = {one.message.message_id: (one.message.data, one.message.attributes["number"]) for one in received}
    assert got == {key: (b"text %d" % number, str(number)) for key, number in sent.items()}

    tickets = [one.ack_id for one in received]
    subscriber.acknowledge(subscription=subscription, ack_ids=tickets[1:])
    subscriber.modify_ack_deadline(subscription=subscription, ack_ids=tickets, ack_deadline_seconds=0)  # all back
    (again,) = subscriber.pull(subscription=subscription, max_messages=100, timeout=30).received_messages
    assert again.message.message_id == received[0].message.message_id


def test_the_command_says_how_to_reach_it_and_it_ends_with_a_killed_one(server):
    command = [sys.executable, "-m", "infra.local", "up", "pubsub"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as owner:
        variable, _, address = owner.stdout.readline().strip().partition("=")
        assert variable == "PUBSUB_EMULATOR_HOST" and address != server.address
        with socket.create_connection(address.split(":"), timeout=30) as connection:
            os.kill(owner.pid, signal.SIGKILL)
            with suppress(ConnectionResetError):
                while connection.recv(4096):  # its greeting, and then nothing more once it has gone
                    pass
