"""How a stream from Pub/Sub ends on the direct runner: what it has read is in the index or among the dead letters."""

import json
import random
import signal
import threading
import time

import pytest
from encoder import Encoder
from google.cloud import pubsub
from place import Place
from real_servers import running
from waiting import wait_until

from common.errors import InputError
from infra.local.pubsub import PubSub
from pipelines import options, pipeline
from pipelines.errors import JobFailed
from pipelines.transforms import encode as encoding

PROJECT = "pause-test"


class Messages:
    def __init__(self, publisher, subscriber):
        self._publisher, self._subscriber = publisher, subscriber
        self._topic = publisher.topic_path(PROJECT, "companies")
        self.subscription = subscriber.subscription_path(PROJECT, "companies")
        publisher.create_topic(name=self._topic)
        subscriber.create_subscription(name=self.subscription, topic=self._topic)

    def publish(self, id: str) -> None:
        record = {"id": id, "description": f"Makes {id}", "updated_at": "2024-05-01T00:00:00Z"}
        self._publisher.publish(self._topic, json.dumps(record).encode()).result()

    def left(self) -> set[str]:
        """What nobody has acknowledged, taken from there."""
        answer = self._subscriber.pull(subscription=self.subscription, max_messages=1000, timeout=10)
        if answer.received_messages:
            acks = [message.ack_id for message in answer.received_messages]
            self._subscriber.acknowledge(subscription=self.subscription, ack_ids=acks)
        return {json.loads(message.message.data)["id"] for message in answer.received_messages}


@pytest.fixture
def messages():
    with running(PubSub) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", server.address)
        publisher = pubsub.PublisherClient(pubsub.types.BatchSettings(max_messages=1))
        with pubsub.SubscriberClient() as subscriber:
            yield Messages(publisher, subscriber)
        publisher.stop()
        publisher.transport.close()


@pytest.fixture
def encoder():
    started = Encoder()
    yield started
    started.stop()


def test_ended_as_the_first_message_comes_it_has_lost_none_that_it_took(messages, encoder, tmp_path):
    place = Place(tmp_path, encoder.address)
    run = place.start("--runner=DirectRunner", "--subscription", messages.subscription)
    wait_until(lambda: place.index.status().live == 0, run)  # the index is made just before the stream begins
    time.sleep(1.0)
    run.send_signal(signal.SIGTERM)
    messages.publish("first")
    _, complained = run.communicate(timeout=90)
    assert run.returncode == 0, complained
    found = {one.id for batch in place.index.scan() for one in batch}
    wait_until(lambda: found.update(messages.left()) or found == {"first"}, seconds=30)


@pytest.mark.parametrize("number", range(3))
def test_ended_while_messages_come_it_has_lost_none_that_it_took(messages, encoder, tmp_path, number):
    place = Place(tmp_path, encoder.address)
    run = place.start("--runner=DirectRunner", "--subscription", messages.subscription)
    sent: list[str] = []

    def publish() -> None:  # until the very end: a message may be taken at any moment of it
        while run.poll() is None:
            sent.append(f"c{len(sent)}")
            messages.publish(sent[-1])
            time.sleep(0.01)

    publishing = threading.Thread(target=publish)
    publishing.start()
    try:
        wait_until(lambda: place.index.status().live >= 100, run)
        time.sleep(random.Random(number).uniform(0, 0.5))
    finally:
        run.send_signal(signal.SIGTERM)
        said, complained = run.communicate(timeout=90)
        publishing.join()
    assert run.returncode == 0, complained
    indexed = {one.id for batch in place.index.scan() for one in batch}
    assert said.startswith(f"{len(indexed):,} read: {len(indexed):,} indexed"), said
    found = set(indexed)
    wait_until(lambda: found.update(messages.left()) or found == set(sent), seconds=30)


def test_what_no_waiting_mends_ends_the_job_with_all_it_read_in_the_dead_letters(
    messages, encoder, tmp_path, monkeypatch
):
    place = Place(tmp_path, encoder.address)
    real = encoding.encode

    def encode(client, tasks):
        if any(task.document.id == "c20" for task in tasks):
            raise InputError("no such key file")
        return real(client, tasks)

    monkeypatch.setattr(encoding, "encode", encode)
    for number in range(60):
        messages.publish(f"c{number}")
    given = options.parse(["--runner=DirectRunner", "--subscription", messages.subscription, *place.flags])
    with pytest.raises(JobFailed, match=r"no such key file.* records .* dead letters: .*--replay"):
        pipeline.run(given)
    dead = {letter["record"]["id"] for letter in place.dead()}
    assert "c20" in dead
    indexed = {one.id for batch in place.index.scan() for one in batch}
    assert not dead & indexed
    found = dead | indexed
    wait_until(lambda: found.update(messages.left()) or len(found) == 60, seconds=30)
    monkeypatch.undo()
    letters = str(place.letters / "*.jsonl")
    assert place.run(letters, kind="--replay")["indexed"] == len(dead)
