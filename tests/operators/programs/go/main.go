// The operator written with controller-runtime.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "example.com/index"

var bug = os.Getenv("BUG")

func newWebsite() *unstructured.Unstructured {
	site := &unstructured.Unstructured{}
	site.SetAPIVersion("example.com/v1")
	site.SetKind("Website")
	return site
}

type reconciler struct {
	client.Client
	reader client.Reader
}

func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := newWebsite()
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := client.MergeFrom(site.DeepCopy())
	if site.GetDeletionTimestamp() != nil {
		if bug != "finalizer" {
			if err := r.changeIndex(ctx, request, nil); err != nil {
				return ctrl.Result{}, err
			}
		}
		controllerutil.RemoveFinalizer(site, finalizer)
		return ctrl.Result{}, r.Patch(ctx, site, before)
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		if err := r.Patch(ctx, site, before); err != nil {
			return ctrl.Result{}, err
		}
	}
	title, _, _ := unstructured.NestedString(site.Object, "spec", "title")
	if err := r.writePage(ctx, site, title); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.changeIndex(ctx, request, &title); err != nil {
		return ctrl.Result{}, err
	}
	before = client.MergeFrom(site.DeepCopy())
	if err := unstructured.SetNestedField(site.Object, title, "status", "title"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, site, before)
}

func (r reconciler) writePage(ctx context.Context, site *unstructured.Unstructured, title string) error {
	page := &corev1.ConfigMap{Data: map[string]string{"title": title}}
	page.Namespace, page.Name, page.Labels = site.GetNamespace(), site.GetName()+"-page", map[string]string{"site": site.GetName()}
	if bug == "timeout" {
		page.Name, page.GenerateName = "", page.Name+"-"
	}
	if bug != "create" {
		if err := controllerutil.SetControllerReference(site, page, r.Scheme()); err != nil {
			return err
		}
	}
	err := r.Create(ctx, page)
	if !apierrors.IsAlreadyExists(err) || bug == "update" {
		return client.IgnoreAlreadyExists(err)
	}
	return r.Patch(ctx, page, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data": {"title": %q}}`, title)))
}

// changeIndex sets the website's row, or removes it if there is no title.
func (r reconciler) changeIndex(ctx context.Context, request ctrl.Request, title *string) error {
	var index corev1.ConfigMap
	if err := r.reader.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: "index"}, &index); err != nil {
		return err
	}
	delete(index.Data, request.Name)
	if title != nil {
		if index.Data == nil {
			index.Data = map[string]string{}
		}
		index.Data[request.Name] = *title
	}
	err := r.Update(ctx, &index)
	if bug == "conflict" && apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// probe ends the operator as soon as the server can't be reached.
func probe(reader client.Reader) manager.RunnableFunc {
	return func(ctx context.Context) error {
		for {
			var index corev1.ConfigMap
			if err := reader.Get(ctx, client.ObjectKey{Namespace: "default", Name: "index"}, &index); err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func run() error {
	log.SetLogger(zap.New())
	operator, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if bug == "outage" {
		if err := operator.Add(probe(operator.GetAPIReader())); err != nil {
			return err
		}
	}
	r := reconciler{operator.GetClient(), operator.GetAPIReader()}
	if err := ctrl.NewControllerManagedBy(operator).For(newWebsite()).Complete(r); err != nil {
		return err
	}
	return operator.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
