// Package greeting is a controller that keeps a ConfigMap for each Greeting.
package greeting

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// New returns an empty Greeting.
func New() *unstructured.Unstructured {
	greeting := &unstructured.Unstructured{}
	greeting.SetAPIVersion("example.com/v1")
	greeting.SetKind("Greeting")
	return greeting
}

// Reconciler writes the text of a Greeting into the ConfigMap of the same name.
type Reconciler struct{ client.Client }

// Reconcile is called when a Greeting or its ConfigMap has changed.
func (r Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := New()
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	config := &corev1.ConfigMap{}
	config.Namespace, config.Name = request.Namespace, request.Name
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"text": text}
		return controllerutil.SetControllerReference(greeting, config, r.Scheme())
	})
	return ctrl.Result{}, err
}

// SetUp adds the controller to the manager.
func SetUp(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(New()).Owns(&corev1.ConfigMap{}).Complete(Reconciler{manager.GetClient()})
}
