package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	finalizer = "example.com/hold"
	imageKey  = "image"
)

// A copier keeps a ConfigMap of the same name beside each Deployment labelled so, and says in its status how many it has seen.
type copier struct{ client.Client }

func (c copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, request.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !deployment.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&deployment, finalizer) {
			return ctrl.Result{}, c.Update(ctx, &deployment)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&deployment, finalizer) {
		if err := c.Update(ctx, &deployment); err != nil {
			return ctrl.Result{}, err
		}
	}
	copy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: request.Name, Namespace: request.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, copy, func() error {
		copy.Data = map[string]string{"image": deployment.Spec.Template.Spec.Containers[0].Image}
		return controllerutil.SetControllerReference(&deployment, copy, c.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Status.ObservedGeneration = deployment.Generation
	return ctrl.Result{}, c.Status().Patch(ctx, &deployment, before)
}

// cached runs a manager with leader election, a controller, an index and the cache, and looks at what comes of it.
func cached() error {
	log.SetLogger(zap.New())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	base, err := config()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(base, ctrl.Options{
		Metrics: metrics.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "go-client", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, imageKey, func(object client.Object) []string {
		return []string{object.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image}
	}); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
		Complete(copier{manager.GetClient()}); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { stopped <- manager.Start(running) }()
	err = scenario(ctx, manager.GetClient())
	stop()
	return errors.Join(err, <-stopped)
}

func scenario(ctx context.Context, c client.Client) error {
	web := deployment("web", "nginx:1")
	if err := c.Create(ctx, web); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(web)
	var copy corev1.ConfigMap
	if err := eventually(ctx, "the copy", func() (bool, error) {
		err := c.Get(ctx, key, &copy)
		return err == nil && copy.Data["image"] == "nginx:1", client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	if !metav1.IsControlledBy(&copy, web) {
		return fmt.Errorf("the copy has no owner: %v", copy.OwnerReferences)
	}
	if err := c.Get(ctx, key, web); err != nil {
		return err
	}
	before := client.StrategicMergeFrom(web.DeepCopy())
	web.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	if err := c.Patch(ctx, web, before); err != nil {
		return err
	}
	var listed appsv1.DeploymentList
	if err := eventually(ctx, "the index, and the status", func() (bool, error) {
		err := c.List(ctx, &listed, client.MatchingFields{imageKey: "nginx:2"})
		return len(listed.Items) == 1 && listed.Items[0].Status.ObservedGeneration == 2, err
	}); err != nil {
		return err
	}
	if err := eventually(ctx, "the changed copy", func() (bool, error) {
		err := c.Get(ctx, key, &copy)
		return copy.Data["image"] == "nginx:2", err
	}); err != nil {
		return err
	}
	if err := c.Delete(ctx, web, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	return eventually(ctx, "the end", func() (bool, error) {
		err := c.Get(ctx, key, web)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func deployment(name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
			},
		},
	}
}

// eventually asks again until the answer is yes, or an error, or the time is up.
func eventually(ctx context.Context, what string, ask func() (bool, error)) error {
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
