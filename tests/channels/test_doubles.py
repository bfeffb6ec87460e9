"""The servers of tests/doubles, run in a thread for tests that are not asynchronous."""

import smtplib

import httpx
import pytest

from tests.doubles import http_receiver as http
from tests.doubles.http_receiver import HttpReceiver
from tests.doubles.smtp_server import SmtpServer
from tests.doubles.threads import in_thread


def test_a_receiver_in_a_thread() -> None:
    with in_thread(HttpReceiver()) as receiver, httpx.Client() as client:
        receiver.then(http.answer(503), http.answer(200, body=b"hello"))
        answers = [client.post(receiver.url, content=b"x") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 200, 200]
    assert [request.body for request in receiver.requests] == [b"x"] * 3
    assert receiver.connections == 1


def test_it_ends_although_a_visitor_is_still_waiting() -> None:
    with in_thread(HttpReceiver(http.read_then_hang)) as receiver, pytest.raises(httpx.ReadTimeout):
        httpx.post(receiver.url, content=b"x", timeout=0.2)
    assert receiver.requests[0].complete


def test_a_mail_server_in_a_thread() -> None:
    with in_thread(SmtpServer()) as server, smtplib.SMTP("127.0.0.1", server.port, timeout=5) as client:
        client.sendmail("a@sender.example", ["b@example.com"], b"Subject: hi\r\n\r\n.dot\r\n")
    assert server.messages == [b"Subject: hi\r\n\r\n.dot\r\n"]
