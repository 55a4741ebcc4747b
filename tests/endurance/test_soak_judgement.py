"""The soak's judgement: a leak is seen through the noise, and noise is no leak."""

import random

from tests.endurance.soak import SoakSample, judge


def judged(per_second: float, noise: float) -> bool:
    dice = random.Random(7)
    samples = [
        SoakSample(n * 10.0, n * 30, {"worker fds": 60 + per_second * n * 10 + dice.uniform(-noise, noise)})
        for n in range(180)
    ]
    return judge(samples)[0].fine


def test_a_leak_of_one_descriptor_in_two_minutes_is_seen_and_noise_is_none() -> None:
    assert judged(0.0, noise=8)
    assert not judged(1 / 120, noise=8)
