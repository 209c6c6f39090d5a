"""The guarantees by name."""

from collections.abc import Mapping
from typing import Final

from conformance.robustness.guarantees.answers import answers
from conformance.robustness.guarantees.guarantee import Guarantee
from conformance.robustness.guarantees.lifecycle import one_after_the_other, side_by_side
from conformance.robustness.guarantees.processes.shutdown import shutdown
from conformance.robustness.guarantees.processes.surroundings import surroundings
from conformance.robustness.guarantees.requests.fuzzing import fuzzing
from conformance.robustness.guarantees.requests.malformed import malformed
from conformance.robustness.guarantees.requests.operations import operations
from conformance.robustness.guarantees.requests.strings import strings
from conformance.robustness.guarantees.scale import scale
from conformance.robustness.guarantees.slow_senders import slow_senders
from conformance.robustness.guarantees.soak import soak
from conformance.robustness.guarantees.soak_virtual import soak_virtual
from conformance.robustness.guarantees.storage import histories
from conformance.robustness.guarantees.storage.cancellations import cancellations
from conformance.robustness.guarantees.storage.machine import state_machine
from conformance.robustness.guarantees.storage.revisions import revisions
from conformance.robustness.guarantees.storage.simulation import simulation
from conformance.robustness.guarantees.suites import TESTS, suite
from conformance.robustness.guarantees.watchers import fan_out, slow_readers

GUARANTEES: Final[Mapping[str, Guarantee]] = {
    "revisions": Guarantee(
        "Each write has the next revision; lists and watches of the past show it until it is compacted.", revisions
    ),
    "state-machine": Guarantee("Storages do what a dictionary and a log of states do.", state_machine),
    "simulation": Guarantee("Whatever the order of clients' steps, what they see is explained by the log.", simulation),
    "cancellations": Guarantee("A write whose client goes away happens whole or not at all.", cancellations),
    "histories": Guarantee(
        "What clients see is explained by the log, while the server is killed and compacts.", histories.histories
    ),
    "kills": Guarantee("kill -9 loses nothing that was answered, and repeats no revision.", histories.kills),
    "etcd-faults": Guarantee(
        "Two servers on an etcd that stops, dies, is cut off and compacts keep all promises.", histories.etcd_faults
    ),
    "planted-bugs": Guarantee(
        "The checks of histories find each bug that is planted in a server.", histories.planted_bugs
    ),
    "operations": Guarantee(
        "Each operation of the OpenAPI documents answers each request, without a failure of the server.", operations
    ),
    "malformed-http": Guarantee(
        "Malformed requests get one answer or a closed connection, the same whole and in pieces.", malformed
    ),
    "strings": Guarantee("Odd texts break nothing, and come back as they were sent.", strings),
    "fuzzing": Guarantee("Each parser returns a value or its own error for any bytes.", fuzzing),
    "fan-out": Guarantee("Each watcher gets each event once, in order.", fan_out),
    "slow-readers": Guarantee(
        "Watchers that stop reading are ended, or go on without a gap; the others lose nothing, and memory is bounded.",
        slow_readers,
    ),
    "slow-senders": Guarantee(
        "Connections that send no request within 32 seconds are closed, and delay no other client.", slow_senders
    ),
    "answers": Guarantee("Answers are those that real servers have given.", answers),
    "scale": Guarantee("Many objects take little memory, and lists of them keep no client waiting.", scale),
    "lifecycle": Guarantee(
        "Clusters that were stopped leave no descriptor, thread or event loop.", one_after_the_other
    ),
    "side-by-side": Guarantee("Clusters in one process know nothing of each other.", side_by_side),
    "shutdown": Guarantee(
        "A server that is stopped under load answers each write that happens, and frees its port.", shutdown
    ),
    "surroundings": Guarantee(
        "Without a home, a temporary folder, room or descriptors a server serves, or says why not in one line.",
        surroundings,
    ),
    "soak": Guarantee("Memory, descriptors and threads of a server don't grow with time.", soak),
    "soak-virtual": Guarantee("Nothing of a cluster grows with the hours of its virtual clock.", soak_virtual),
    **{name: Guarantee(tests.promise, suite(name)) for name, tests in TESTS.items()},
}
