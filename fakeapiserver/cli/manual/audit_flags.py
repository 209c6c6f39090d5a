"""kube-apiserver's flags of auditing: both backends, log and webhook, have many in common."""

from typing import Final

from fakeapiserver.cli.manual.entry import Flag


def _backend(
    backend: str, *, buffer: str, batch: str, wait: str, burst: str, throttle: str, rate: str
) -> dict[str, Flag]:
    """`backend`: log or webhook; the others are defaults."""
    return {
        f"audit-{backend}-batch-buffer-size": Flag("How many events wait for a batch.", buffer),
        f"audit-{backend}-batch-max-size": Flag("The most events of a batch.", batch),
        f"audit-{backend}-batch-max-wait": Flag("How long a batch that isn't full waits.", wait),
        f"audit-{backend}-batch-throttle-burst": Flag("How many batches may go at once after a pause.", burst),
        f"audit-{backend}-batch-throttle-enable": Flag("Limits the rate of batches.", throttle),
        f"audit-{backend}-batch-throttle-qps": Flag("The batches per second.", rate),
        f"audit-{backend}-mode": Flag(
            "When events are sent: batch, blocking or blocking-strict.", _MODES[backend], "MODE"
        ),
        f"audit-{backend}-truncate-enabled": Flag("Shortens events and batches that are too large.", "false"),
        f"audit-{backend}-truncate-max-batch-size": Flag("The largest batch, in bytes.", "10485760", "BYTES"),
        f"audit-{backend}-truncate-max-event-size": Flag("The largest event, in bytes.", "102400", "BYTES"),
        f"audit-{backend}-version": Flag("The version of events.", "audit.k8s.io/v1", "VERSION"),
    }


_MODES: Final = {"log": "blocking", "webhook": "batch"}
AUDITING: Final = {
    "audit-policy-file": Flag(
        "The Policy that says which requests are audited.", "", "FILE", "--audit-policy-file=policy.yaml"
    ),
    "audit-log-path": Flag("The file that gets the events; - is standard output.", "", "FILE", "--audit-log-path=-"),
    "audit-log-format": Flag("The format of events: json or legacy.", "json", "FORMAT"),
    "audit-log-compress": Flag("Compresses rotated files with gzip.", "false"),
    "audit-log-maxage": Flag("Deletes rotated files after this many days; 0 keeps them.", "366", "DAYS"),
    "audit-log-maxbackup": Flag("Keeps this many rotated files; 0 keeps all.", "100"),
    "audit-log-maxsize": Flag("Rotates a file of this size.", "100", "MB"),
    **_backend("log", buffer="10000", batch="1", wait="0s", burst="15", throttle="false", rate="10"),
    "audit-webhook-config-file": Flag("A kubeconfig of the server that gets the events.", "", "FILE"),
    "audit-webhook-initial-backoff": Flag("The pause before the first repetition.", "10s"),
    "audit-webhook-batch-initial-backoff": Flag("The former name of --audit-webhook-initial-backoff.", "10s"),
    **_backend("webhook", buffer="10000", batch="400", wait="30s", burst="15", throttle="true", rate="10"),
}
