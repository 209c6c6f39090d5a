"""The commands of `fakeapiserver` with their flags, in the order in which help lists them."""

from functools import cache
from typing import Final

from fakeapiserver.cli.manual import (
    controller_manager_flags,
    diff_versions,
    kube_apiserver_flags,
    nodes_flags,
    serve_flags,
)
from fakeapiserver.cli.manual.entry import Command, Flag

HELP: Final = {"help": Flag("Prints this help.", "false")}
_OUTPUT: Final = {"output": Flag("Prints text or JSON.", "text", "FORMAT", "--output=json", "outputs")}
_SERVER: Final = Flag("The server, as serve --background --name has named it.", "default", "NAME", "--server=second")
_SERVE_ONLY: Final = ("background", "name", "stop-with-stdin")  # run refuses these
_SERVE_FIRST: Final = (
    "write-kubeconfig",
    "output",
    "nodes",
    "crds",
    "webhooks",
    "controllers",
    "kubernetes-version",
    "secure-port",
    "authorization-mode",
    "feature-gates",
)
_PROJECT: Final = {
    "folder": Flag("The project's folder.", "the current one", "DIR", "--folder=welcome-operator"),
    **_OUTPUT,
    **HELP,
}
_KIND: Final = {
    "group": Flag("The group, without the project's domain.", "none", "GROUP", "--group=apps"),
    "version": Flag("The version; required.", "", "VERSION", "--version=v1alpha1"),
    "kind": Flag("The kind, in CamelCase; required.", "", "KIND", "--kind=CronJob"),
    "plural": Flag("The plural of the kind.", "made of the kind", "PLURAL", "--plural=cronjobs"),
    "force": Flag("Writes over files that exist.", "false"),
    "external-api-domain": Flag(
        "The domain of a group that others define.", "none", "DOMAIN", "--external-api-domain=cert-manager.io"
    ),
}


@cache
def commands() -> dict[str, Command]:
    """By name, such as `create api`."""
    return {
        command.name: command for command in (*_servers(), *_IN_THE_BACKGROUND, *_ELSEWHERE, *_OPERATORS, *_QUESTIONS)
    }


def _servers() -> tuple[Command, ...]:
    flags = {**serve_flags.OWN, **kube_apiserver_flags.TOPICS}
    note = (
        "Every flag of kube-apiserver is accepted; those marked with * have no effect here and print a warning. Without flags the "
        "server listens on a free port of 127.0.0.1, with an authority of its own, Node and RBAC."
    )
    return (
        Command(
            "serve",
            "serve [FLAG ...]",
            f"Runs a Kubernetes API server on this machine until Ctrl-C, and prints the line that makes kubectl use it. {note}",
            flags,
            _SERVE_FIRST,
        ),
        Command(
            "run",
            "run [FLAG ...] -- COMMAND [ARGUMENT ...]",
            "Starts an API server, runs COMMAND with KUBECONFIG set to it, stops the server, and exits as COMMAND did. With --webhooks, "
            f"COMMAND gets WEBHOOK_HOST, WEBHOOK_PORT and WEBHOOK_CERT_DIR, too. {note}",
            {
                title: {name: flag for name, flag in topic.items() if name not in _SERVE_ONLY}
                for title, topic in flags.items()
            },
            _SERVE_FIRST,
        ),
    )


_IN_THE_BACKGROUND: Final = (
    Command(
        "status",
        "status [--name NAME] [--output text|json]",
        "Shows the servers that serve --background has started. Exits with 1 if none runs.",
        {"Server": {"name": Flag("Shows this server alone.", "all", "NAME", "--name=second"), **_OUTPUT, **HELP}},
    ),
    Command(
        "stop",
        "stop [--name NAME | --all] [--output text|json]",
        "Ends a server that serve --background has started, and returns when it is gone. Exits with 1 if none runs.",
        {
            "Server": {
                "name": Flag("The server to end.", "default", "NAME", "--name=second"),
                "all": Flag("Ends all of them.", "false"),
                **_OUTPUT,
                **HELP,
            }
        },
    ),
    Command(
        "faults",
        "faults [ACTION [FIELD=VALUE ... | ID | DURATION]] [FLAG ...]",
        "Lets requests and watches of clients go wrong: `faults add verb=update resource=leases status=409 times=3`. The other "
        "actions are list, wait ID, remove ID and clear, and for the whole server `outage 10s` and restart.",
        {
            "Faults": {
                "server": _SERVER,
                "faults": Flag(
                    "A YAML file with the faults to add, each with its fields.",
                    "none",
                    "FILE",
                    "--faults=faults.yaml",
                ),
                "hits": Flag("The number of struck requests that wait waits for.", "1", "N", "--hits=3"),
                "timeout": Flag("The time after which wait gives up.", "10s", "DURATION", "--timeout=1m"),
                "compact": Flag("Lets restart forget the history, so that watches can't be resumed.", "false"),
                **_OUTPUT,
                **HELP,
            }
        },
    ),
    Command(
        "requests",
        "requests [VERB RESOURCE [[NAMESPACE/]NAME]] [FLAG ...]",
        "Shows the last requests of a server's clients, or those that match, such as `requests patch deployments/status`. The server keeps "
        "them with `serve --kept-requests=1000`.",
        {
            "Requests": {
                "server": _SERVER,
                "since": Flag("The number (seq) after which requests are shown.", "0", "N", "--since=120"),
                "user-agent": Flag(
                    "The clients to show, as a shell pattern.", "*", "PATTERN", "--user-agent='my-operator*'"
                ),
                "follow": Flag("Goes on with each new request until it is interrupted.", "false"),
                "output": Flag(
                    "Prints a table, JSON, a transcript without times and uids, an HTTP Archive (har), events of an audit log (audit), "
                    "or the least roles that allow the requests (roles).",
                    "text",
                    "FORMAT",
                    "--output=roles",
                ),
                **HELP,
            }
        },
    ),
    Command(
        "state",
        "state [show | save|diff FILE | load|export PATH | check|compact DIR] [FLAG ...]",
        "Saves the state of a server with its history in a file (mode 0600: it contains the values of Secrets), restores it, shows the "
        "changes since it was saved or those between two files, and writes the objects as manifests. Any other file or folder with objects "
        "adds them to those of the server: manifests, the output of `kubectl get -o yaml`, a support bundle, a must-gather. With the data "
        "directory of a server that has stopped (serve --data-dir): `check` reads all of it, `compact` forgets its history and gives the "
        "space back, `export` writes it as a saved state (a FILE with .json or .json.gz), or as manifests, and takes what can be read if "
        "it is damaged.",
        {
            "State": {
                "server": _SERVER,
                "secrets": Flag("Exports the values of Secrets, too.", "false"),
                "noise": Flag("Also compares managedFields, resourceVersion, uid, generation and times.", "false"),
                **HELP,
            }
        },
    ),
    Command(
        "clock",
        "clock [now | stop | start | advance DURATION | jump DURATION] [FLAG ...]",
        "Shows or turns the clock of a server. `advance 30m` lets happen what is due within 30 minutes; `jump -- -5m` sets the wall clock "
        "back by five minutes, as NTP does, and leaves what waits alone.",
        {"Clock": {"server": _SERVER, **_OUTPUT, **HELP}},
    ),
    Command(
        "ui",
        "ui [FILE] [FLAG ...]",
        "Opens the page of a server that was started with --ui in the browser, by a link that logs it in once. With the FILE of a saved "
        "state it serves that one until Ctrl-C: its clock stands still, and no controller changes it. It shows the "
        "requests, too, if the server that saved the state was started with --ui.",
        {
            "Page": {
                "server": _SERVER,
                "name": Flag("The same as --server.", "default", "NAME", "--name=second"),
                "open": Flag("Opens the browser; --open=false only prints the link.", "true"),
                **_OUTPUT,
                **HELP,
            }
        },
    ),
)


_ELSEWHERE: Final = (
    Command(
        "clone",
        "clone FILE --context NAME [FLAG ...]",
        "Copies the objects of a live cluster into a file, a List as kubectl prints it, for serve --load and Cluster.load. It sends "
        "GET and nothing else, at most 50 a second, and reads the context that you name, never the current one. Objects that the user may "
        "not list are named at the end. The file has mode 0600.",
        {
            "Clone": {
                "context": Flag("The kubeconfig's context to read; required.", "", "NAME", "--context=prod"),
                "kubeconfig": Flag(
                    "The kubeconfig.", "KUBECONFIG or ~/.kube/config", "FILE", "--kubeconfig=prod.kubeconfig"
                ),
                "namespace": Flag(
                    "The namespaces to read, with the definitions of their custom resources.",
                    "none",
                    "LIST",
                    "--namespace=shop,billing",
                ),
                "all-namespaces": Flag("Reads everything.", "false"),
                "cluster-scoped": Flag("Reads the objects outside of namespaces, too.", "false"),
                "with-secrets": Flag("Also takes the values of Secrets.", "false"),
                **HELP,
            }
        },
    ),
    diff_versions.command({**_OUTPUT, **HELP}),
    Command(
        "sweep",
        "sweep --operator COMMAND --scenario FILE [FLAG ...]",
        "Runs an operator, in any language, through a scenario: first undisturbed, and then once for each surprise that a legal cluster "
        "may have for it. It is killed between two writes, its writes are refused, others change its objects, and it is served by an API "
        "server that lags behind. Each case has a server of its own. A run that ends in another state than the undisturbed one, "
        "loses an object, crashes or doesn't come to rest is a finding, and is tried a second time. "
        "The exit status is 3 if there are findings.",
        {
            "Sweep": {
                "operator": Flag(
                    "The command that runs the operator; {port} and {port:NAME} in it are free ports. KUBECONFIG leads to the server.",
                    "",
                    "COMMAND",
                    "--operator='./bin/manager --metrics-bind-address=:{port}'",
                ),
                "scenario": Flag("The YAML file with what users do.", "", "FILE", "--scenario=scenario.yaml"),
                "jobs": Flag("Runs so many cases at a time.", "two per processor, 8 at most", "N", "--jobs=4"),
                "budget": Flag("Begins no case after this time.", "none", "DURATION", "--budget=5m"),
                "kinds": Flag("The kinds of surprises.", "all", "LIST", "--kinds=crash,stale", "kinds"),
                "only": Flag("The one surprise of this name.", "none", "NAME"),
                "plan": Flag("Prints the surprises and ends.", "false"),
                "results": Flag("Keeps the results in this file, and goes on from it.", "none", "FILE"),
                "patience": Flag(
                    "The time until the right state must be reached.", "10s", "DURATION", "--patience=30s"
                ),
                "quiet": Flag(
                    "The time for which an operator at rest sends no request.", "300ms", "DURATION", "--quiet=1s"
                ),
                "calm": Flag(
                    "The time for which an undisturbed run waits for a further write.", "5s", "DURATION", "--calm=10s"
                ),
                "output": Flag("Prints text, JSON or JUnit XML.", "text", "FORMAT", "--output=junit"),
                "page": Flag(
                    "Also writes the report to this file, as a page for browsers.", "none", "FILE", "--page=report.html"
                ),
                **HELP,
            }
        },
    ),
    Command(
        "explore",
        "explore --operator COMMAND --scenario FILE [FLAG ...]",
        "Tries the specs that users might write: from the schema of a CustomResourceDefinition and the object that the scenario applies "
        "first, fields are set and unset, raised and lowered, lists and maps grow and shrink. Each spec is judged by what an operator "
        "makes of it: changing to it must lead to the same objects as beginning with it, and changing back to those of before. "
        "The operator must come to rest, must not crash, and must not say Ready too early. "
        "The exit status is 3 if there are findings.",
        {
            "Explore": {
                "operator": Flag(
                    "The command that runs the operator; {port} and {port:NAME} in it are free ports. KUBECONFIG leads to the server.",
                    "",
                    "COMMAND",
                    "--operator='./bin/manager --metrics-bind-address=:{port}'",
                ),
                "scenario": Flag(
                    "The YAML file whose first steps apply the custom resource.", "", "FILE", "--scenario=scenario.yaml"
                ),
                "object": Flag(
                    "The custom resource to change, if there are several.",
                    "none",
                    "RESOURCE/NAME",
                    "--object=databases/db",
                ),
                "cases": Flag("Tries at most so many specs.", "100", "N", "--cases=500"),
                "depth": Flag("Changes so many fields at once, 1 or 2.", "2", "N", "--depth=1"),
                "jobs": Flag("Runs so many cases at a time.", "two per processor, 8 at most", "N", "--jobs=4"),
                "budget": Flag("Begins no case after this time.", "none", "DURATION", "--budget=5m"),
                "only": Flag("The one change of this name.", "none", "NAME"),
                "plan": Flag("Prints the changes and ends.", "false"),
                "results": Flag("Keeps the results in this file, and goes on from it.", "none", "FILE"),
                "patience": Flag(
                    "The time until the right state must be reached.", "10s", "DURATION", "--patience=30s"
                ),
                "quiet": Flag(
                    "The time for which an operator at rest sends no request.", "300ms", "DURATION", "--quiet=1s"
                ),
                "output": Flag("Prints text, JSON or JUnit XML.", "text", "FORMAT", "--output=junit"),
                "page": Flag(
                    "Also writes the report to this file, as a page for browsers.", "none", "FILE", "--page=report.html"
                ),
                **HELP,
            }
        },
    ),
    Command(
        "controller-manager",
        "controller-manager --kubeconfig FILE [FLAG ...]",
        "Runs kube-controller-manager's controllers for the API server of --kubeconfig or --master. KUBECONFIG, ~/.kube/config and a "
        "pod's service account are ignored: the controllers write to the server that you name, and to no other. Every flag of "
        "kube-controller-manager is accepted; those marked with * have no effect here and print a warning.",
        controller_manager_flags.TOPICS,
        controller_manager_flags.FIRST,
    ),
    Command(
        "nodes",
        "nodes --kubeconfig FILE [FLAG ...]",
        "Simulates nodes, their kubelets and a scheduler for the API server of --kubeconfig. KUBECONFIG, ~/.kube/config and a pod's "
        "service account are ignored: the nodes are made on the server that you name, and on no other. The user of the kubeconfig must "
        "be allowed to write nodes, leases and pods. Nodes are ready once a controller manager runs: its node-lifecycle-controller "
        "removes the taint of new nodes.",
        {**nodes_flags.TOPICS, "Misc": {**nodes_flags.TOPICS["Misc"], **HELP}},
    ),
    Command(
        "envtest-assets",
        "envtest-assets [DIR | list | use [VERSION]] [FLAG ...]",
        "Writes the three programs that envtest starts into a folder, and prints the line that makes envtest find them:\n\n"
        '    eval "$(fakeapiserver envtest-assets)"\n    go test ./...\n\n'
        "`use VERSION` writes programs of one minor version (see `list`; 1.35, 1.35.x, 1.35.4, 1.35.x! and latest are accepted), "
        "and takes the flags of setup-envtest. kubebuilder's projects call setup-envtest in their Makefile; this line makes an "
        "unchanged Makefile use the programs of this package, and downloads nothing:\n\n"
        '    make test -o envtest ENVTEST="$(fakeapiserver envtest-assets -p path)/setup-envtest"\n\n'
        "The folder has setup-envtest, too, which is `envtest-assets` under that name. "
        "The programs run with the Python that wrote them, and end with the process that started them.",
        {
            "Output": {
                "print": Flag(
                    "Prints the folder (path), an export line (env), JSON (json), or a summary (overview). The short form is -p.",
                    "env; overview after use",
                    "WHAT",
                    "-p path",
                    "envtest-outputs",
                ),
                "output": Flag("Prints text or JSON: the same as -p env and -p json.", "text", "FORMAT", "", "outputs"),
            },
            "Programs": {
                "bin-dir": Flag(
                    "The folder that gets k8s/fakeapiserver-VERSION-OS-ARCH with the programs.",
                    "the user's cache",
                    "DIR",
                    "--bin-dir=bin",
                ),
                "detached": Flag("Lets the servers outlive the process that started them.", "false"),
            },
            "setup-envtest": {
                "installed-only": Flag("Never downloads, which this command doesn't do anyway; also -i.", "false"),
                "os": Flag("The operating system; only this machine's.", "this machine's", "OS"),
                "arch": Flag("The processor; only this machine's.", "this machine's", "ARCH"),
                "force": Flag("Writes the programs again, as always.", "false"),
                "verify": Flag("Verifies downloads, which this command never makes.", "true"),
                "use-env": Flag("Uses KUBEBUILDER_ASSETS if its programs are there.", "false"),
                "index": Flag("The index of downloads, which is not read.", "", "URL"),
                "verbose": Flag("Prints more; has no effect. The short form is -v.", "0", "LEVEL"),
            },
            "Misc": HELP,
        },
        ("print", "bin-dir", "detached"),
        "envtest-assets",
    ),
)


_OPERATORS: Final = (
    Command(
        "init",
        "init [--domain DOMAIN] [--repo NAME] [FLAG ...]",
        "Writes an operator's project into an empty folder: a manager, manifests, tests and a Makefile. `create api` adds kinds to it.",
        {
            "Project": {
                "domain": Flag("The domain behind the kinds' groups.", "my.domain", "DOMAIN", "--domain=example.com"),
                "repo": Flag("The project's name; the last word of a URL counts.", "the folder's name", "NAME"),
                "fakeapiserver-source": Flag(
                    "What `make test` installs as fakeapiserver: a requirement, a folder or a wheel.",
                    "what is running, if pip installed it from a folder or a file",
                    "SOURCE",
                    "--fakeapiserver-source=../fakeapiserver",
                ),
                "force": Flag("Writes into a folder that isn't empty.", "false"),
                **_PROJECT,
            }
        },
    ),
    Command(
        "create api",
        "create api --group GROUP --version VERSION --kind KIND [FLAG ...]",
        "Adds a version of a kind to the project, with its definition, its roles, a controller and their tests.",
        {
            "Kind": {
                **_KIND,
                "namespaced": Flag("Puts the objects into namespaces.", "true"),
                "resource": Flag(
                    "Writes the kind; false for a controller of a kind that exists, such as Deployment.", "true"
                ),
                "controller": Flag("Writes a controller and its test.", "true"),
            },
            "Project": _PROJECT,
        },
    ),
    Command(
        "create webhook",
        "create webhook --group GROUP --version VERSION --kind KIND [FLAG ...]",
        "Adds webhooks of a kind to the project, with their configuration and tests. At least one of --defaulting, "
        "--programmatic-validation and --conversion is needed.",
        {
            "Kind": _KIND,
            "Webhook": {
                "defaulting": Flag("Fills in fields that were left out.", "false"),
                "programmatic-validation": Flag("Rejects invalid objects.", "false"),
                "conversion": Flag("Converts other versions from and to --version, the hub.", "false"),
                "spoke": Flag("The other versions of --conversion.", "all", "VERSIONS", "--spoke=v2,v3"),
            },
            "Project": _PROJECT,
        },
    ),
    Command(
        "manifests",
        "manifests [FLAG ...]",
        "Writes config/ from the code: definitions, roles and webhook configurations. Prints the files that changed.",
        {
            "Project": {
                "check": Flag("Changes nothing, and exits with 1 if something would change.", "false"),
                **_PROJECT,
            }
        },
    ),
)


_QUESTIONS: Final = (
    Command(
        "version",
        "version [--output text|json]",
        "Prints the version of this package, the Kubernetes version whose answers it gives by default, and the older ones that "
        "--kubernetes-version accepts.",
        {"Output": {**_OUTPUT, **HELP}},
    ),
    Command(
        "completion",
        "completion bash|zsh|fish",
        "Prints a script for your shell. For this shell only:\n\n"
        "    source <(fakeapiserver completion bash)\n    source <(fakeapiserver completion zsh)\n"
        "    fakeapiserver completion fish | source\n\n"
        "For every shell, add the line to ~/.bashrc, ~/.zshrc (after compinit) or ~/.config/fish/config.fish.",
        {"Misc": HELP},
        (),
        "shells",
    ),
    Command(
        "help",
        "help [TOPIC | COMMAND]",
        "Without an argument, lists the topics and the commands.",
        {"Misc": HELP},
        (),
        "help",
    ),
)


def find_flag(command: Command, name: str) -> Flag | None:
    return next((flags[name] for flags in command.topics.values() if name in flags), None)
