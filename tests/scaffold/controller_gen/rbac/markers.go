package rbac

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=pods;services,verbs=watch;get;list
// +kubebuilder:rbac:groups=core,resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch;extensions,resources=jobs;cronjobs,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=delete
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=art,resources=jobs,verbs=*
// +kubebuilder:rbac:groups=art,resources=jobs,verbs=get
// +kubebuilder:rbac:groups=*,resources=*,verbs=list
// +kubebuilder:rbac:groups=wave,resources=jobs,resourceNames=Leia;Han,verbs=get
// +kubebuilder:rbac:groups=wave,resources=jobs,resourceNames=Han;Leia,verbs=list
// +kubebuilder:rbac:groups=wave,resources=jobs,resourceNames=Chewie,verbs=list
// +kubebuilder:rbac:groups=wave,resources=jobs,verbs=list
// +kubebuilder:rbac:groups=cron;jobs,resources=aa;bb,verbs=get;create
// +kubebuilder:rbac:groups=cron,resources=zz,verbs=create;get
// +kubebuilder:rbac:groups=same,resources=a,verbs=get
// +kubebuilder:rbac:groups=other,resources=a,verbs=get
// +kubebuilder:rbac:groups=third,resources=b,verbs=get
// +kubebuilder:rbac:urls="/metrics",verbs=get
// +kubebuilder:rbac:urls="/healthz";"/livez",verbs=get
// +kubebuilder:rbac:urls="/metrics",verbs=post
// +kubebuilder:rbac:groups=apps,namespace=system,resources=deployments,verbs=get;list
// +kubebuilder:rbac:groups=apps,namespace=system,resources=daemonsets,verbs=get;list
// +kubebuilder:rbac:groups="",namespace=other,resources=configmaps,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,resources=leases,verbs=get;create;update

func R() {}
