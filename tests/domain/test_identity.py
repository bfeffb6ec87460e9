"""Event ids: the same for the same fact, different for any other, safe wherever they travel."""

import string

from hypothesis import given
from hypothesis import strategies as st

from domain.identity import MAX_EVENT_ID_BYTES, digest, event_id, source_of
from domain.kinds import SOURCE_OF, Kind

caller_ids = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=128)
SAFE = set(string.ascii_letters + string.digits + "-_:@+=~")


def test_it_ends_with_its_identity() -> None:
    assert event_id("t", Kind.TASK_CALLBACK, "order-17", "run_1").endswith("_callback_order-17_run_1")
    assert event_id("t", Kind.TASK_DELIVERY, "order-17").endswith("_deliver_order-17")
    assert event_id("t", Kind.TASK_NATIVE, "a", "b").endswith("_native_a_b")
    assert event_id("t", Kind.APPROVAL_PROMPT, "a").endswith("_approval_a")
    assert event_id("t", Kind.USER_NOTIFICATION, "a").endswith("_notification_a")


def test_keys_that_look_alike_stay_different() -> None:
    keys = ["abc", "ABC", "ábc", "abc ", "😀", "😁"]
    assert len({event_id("t", Kind.TASK_CALLBACK, key, "r") for key in keys}) == len(keys)


def test_parts_and_tenants_never_run_together() -> None:
    ids = {
        event_id("t", Kind.TASK_CALLBACK, "a_b", "c"),
        event_id("t", Kind.TASK_CALLBACK, "a", "b_c"),
        event_id("t_a", Kind.TASK_CALLBACK, "b", "c"),
        event_id("u", Kind.TASK_CALLBACK, "a", "b_c"),
    }
    assert len(ids) == 4


@given(caller_ids, caller_ids)
def test_it_is_safe_in_headers_paths_and_workflow_ids(task: str, run: str) -> None:
    identity = event_id("tenant", Kind.TASK_CALLBACK, task, run)
    assert set(identity) <= SAFE
    assert len(identity) <= MAX_EVENT_ID_BYTES
    assert identity == event_id("tenant", Kind.TASK_CALLBACK, task, run)


@given(st.lists(caller_ids, min_size=1, max_size=4), st.lists(caller_ids, min_size=1, max_size=4))
def test_a_digest_tells_any_two_lists_apart(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


def test_its_source_is_read_off_the_id() -> None:
    for kind in Kind:
        assert source_of(event_id("t", kind, "callback_x")) is SOURCE_OF[kind]


def test_other_texts_have_no_source() -> None:
    assert [source_of(text) for text in ("", "x", "x_y", "a_b_callback_c")] == [None] * 4
