// Drives an API server as Go programs do: protobuf in, protobuf out.
//
//	go_client encode           random objects of every kind, as JSON and as protobuf, a line each
//	go_client typed  < KINDS   every verb on every kind through client-go, protobuf only; KINDS are lines of JSON
//	go_client cached           controller-runtime's manager: its cache, client, index, status writer and leader election
//	go_client informed         client-go's typed, dynamic and metadata clients and informers, which begin with a stream
//
// KUBECONFIG names the server. The exit code is 0 when everything was as it should be; what was not is printed.
package main

import (
	"fmt"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var commands = map[string]func() error{"encode": encode, "typed": typed, "cached": cached, "informed": informed, "mirror": mirror}

func main() {
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go_client encode | typed | cached | informed | mirror")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kinds is every built-in kind that a server has.
func kinds() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	return all
}

func config() (*rest.Config, error) {
	found, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	found.QPS = -1
	return found, nil
}
