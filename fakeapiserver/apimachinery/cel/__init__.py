"""CEL for Kubernetes: parser, type checker, evaluator, cost estimates and the library of kube-apiserver.

Upstream: github.com/google/cel-go, k8s.io/apiserver/pkg/cel

    env = Environment({"self": declared.type}, {...})
    program = env.compile("self.minReplicas <= self.maxReplicas")     # CompileError
    program.evaluate({"self": {"minReplicas": 1, "maxReplicas": 3}})  # Result(True, cost=...)
"""
