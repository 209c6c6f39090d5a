package webhook

// +kubebuilder:webhook:path=/mutate-v1-foo,mutating=true,failurePolicy=fail,sideEffects=None,groups=example.com,resources=foos,verbs=create;update,versions=v1,name=mfoo-v1.kb.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-v1-foo,mutating=false,failurePolicy=ignore,sideEffects=NoneOnDryRun,groups=example.com,resources=foos;foos/status,verbs=create;update;delete,versions=v1;v2,name=vfoo-v1.kb.io,admissionReviewVersions=v1;v1beta1,matchPolicy=exact,timeoutSeconds=5
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=fail,sideEffects=None,groups=core,resources=pods,verbs=create,versions=v1,name=apod.kb.io,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded
// +kubebuilder:webhook:path=/validate-any,mutating=false,failurePolicy=fail,sideEffects=None,groups="*",resources="*",verbs="*",versions="*",name=vany.kb.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-a,mutating=false,failurePolicy=fail,sideEffects=None,groups="",resources=pods;services,verbs=connect;delete,versions=v1,name=aaa.kb.io,admissionReviewVersions=v1,serviceName=my-svc,serviceNamespace=my-ns,servicePort=8443
// +kubebuilder:webhook:url="https://hooks.example.com/x",mutating=false,failurePolicy=fail,sideEffects=None,groups=example.com,resources=bars,verbs=create,versions=v1,name=vbar.kb.io,admissionReviewVersions=v1

func W() {}
