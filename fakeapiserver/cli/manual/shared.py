"""Flags that kube-apiserver and kube-controller-manager share. Their meaning is upstream's, the sentences are this project's."""

from typing import Final

from fakeapiserver.cli.manual.entry import Flag

TLS: Final = {
    "disable-http2-serving": Flag("Offers HTTP/1.1 only.", "false"),
    "http2-max-streams-per-connection": Flag("Limits the concurrent HTTP/2 streams of a connection.", "0"),
    "permit-address-sharing": Flag("Sets SO_REUSEADDR on the listening socket.", "false"),
    "permit-port-sharing": Flag("Sets SO_REUSEPORT, so that several processes may listen on the port.", "false"),
    "tls-cert-file": Flag("Serves this certificate, in PEM; needs --tls-private-key-file.", "", "FILE"),
    "tls-private-key-file": Flag("The private key of --tls-cert-file, in PEM.", "", "FILE"),
    "tls-cipher-suites": Flag("The cipher suites to offer, by their names in Go.", "Go's own list", "NAMES"),
    "tls-curve-preferences": Flag("The key exchanges to offer, by their numbers in Go, best first.", "Go's own list"),
    "tls-min-version": Flag("The oldest TLS version to accept.", "VersionTLS12", "VERSION"),
    "tls-sni-cert-key": Flag(
        "A further certificate with its key, served to clients that ask for its names.", "", "CERT,KEY"
    ),
}
REQUEST_HEADER: Final = {
    "requestheader-client-ca-file": Flag(
        "Trusts the identity headers of clients with a certificate of this authority.", "", "FILE"
    ),
    "requestheader-allowed-names": Flag("The common names that such a certificate may have.", "any name", "NAMES"),
    "requestheader-username-headers": Flag("The headers with the user's name.", "", "NAMES", choices=""),
    "requestheader-uid-headers": Flag("The headers with the user's UID.", "", "NAMES"),
    "requestheader-group-headers": Flag("The headers with the user's groups.", "", "NAMES"),
    "requestheader-extra-headers-prefix": Flag(
        "The prefixes of headers with further facts about the user.", "", "PREFIXES"
    ),
}
METRICS: Final = {
    "allow-metric-labels": Flag(
        "The values that labels of metrics may have, as `metric,label=value,value`.", "any value"
    ),
    "allow-metric-labels-manifest": Flag("A YAML file with the same as --allow-metric-labels.", "", "FILE"),
    "disabled-metrics": Flag("Metrics that /metrics leaves out.", "", "NAMES"),
    "show-hidden-metrics-for-version": Flag("Shows metrics that this older version has deprecated.", "", "VERSION"),
}
LOGS: Final = {
    "v": Flag(
        "How much is logged: 0 warnings, 1 information, 2 each request, 4 and more everything.", "0", "LEVEL", "--v=4"
    ),
    "vmodule": Flag("Levels for single source files.", "", "FILE=LEVEL,..."),
    "logging-format": Flag("The format of log lines.", "text", "FORMAT"),
    "log-flush-frequency": Flag("How often buffered log lines are written.", "5s"),
    "log-json-info-buffer-size": Flag("The size of the buffer for JSON lines.", "0", "SIZE"),
    "log-json-split-stream": Flag("Writes errors to stderr and everything else to stdout, as JSON.", "false"),
    "log-text-info-buffer-size": Flag("The size of the buffer for text lines.", "0", "SIZE"),
    "log-text-split-stream": Flag("Writes errors to stderr and everything else to stdout.", "false"),
}
GLOBAL: Final = {
    "help": Flag("Prints this help.", "false"),
    "version": Flag("Prints the version and exits.", "false", "true|false|raw"),
}
