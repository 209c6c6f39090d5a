#!/bin/sh
# Every client finds the server by KUBECONFIG, which `fakeapiserver run` sets.
set -eu
kubectl apply -f web.yaml
kubectl wait --for=condition=Available deployment/web --timeout=60s
kubectl get deployment web --no-headers -o custom-columns=READY:.status.readyReplicas
