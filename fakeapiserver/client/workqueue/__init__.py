"""Work queues of controllers (upstream: k8s.io/client-go/util/workqueue)."""

from fakeapiserver.client.workqueue.queue import PriorityQueue, QueueMetrics, ShutDown, WorkQueue
from fakeapiserver.client.workqueue.rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
)

__all__ = [
    "BucketRateLimiter",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "PriorityQueue",
    "QueueMetrics",
    "RateLimiter",
    "ShutDown",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "default_controller_rate_limiter",
]
